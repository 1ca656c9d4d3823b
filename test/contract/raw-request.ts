import { request, type IncomingHttpHeaders } from "node:http";

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface RawRequest {
  readonly base: string;
  readonly method: string;
  /** Path and query, sent as they are. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer | undefined;
  /** Closes the connection when the body so far is enough. */
  readonly enough?: ((text: string) => boolean) | undefined;
  readonly signal?: AbortSignal | undefined;
  /** The client leaves then with what has come so far, or with the first of it. */
  readonly left?: AbortSignal | undefined;
}

/** Sends a request exactly as it is given; fetch would tidy paths, methods and headers. */
export async function sendRaw(options: RawRequest): Promise<RawAnswer> {
  const { hostname, port } = new URL(options.base);
  const chunked = options.headers["transfer-encoding"] !== undefined;
  return await new Promise((resolve, reject) => {
    const outgoing = request(
      {
        hostname,
        port,
        method: options.method,
        path: options.target,
        agent: false,
        headers: {
          ...options.headers,
          ...(options.body === undefined || chunked
            ? {}
            : { "content-length": String(options.body.length) }),
        },
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      },
      (incoming) => {
        const pieces: Buffer[] = [];
        const finish = (): void =>
          resolve({
            status: incoming.statusCode!,
            headers: incoming.headers,
            text: Buffer.concat(pieces).toString(),
          });
        const leave = (): void => {
          finish();
          outgoing.destroy();
        };
        incoming.on("data", (piece: Buffer) => {
          pieces.push(piece);
          if (
            options.left?.aborted === true ||
            options.enough?.(Buffer.concat(pieces).toString()) === true
          ) {
            leave();
          }
        });
        options.left?.addEventListener("abort", () => {
          if (pieces.length > 0) {
            leave();
          }
        });
        incoming.on("end", finish);
        incoming.on("error", reject);
      },
    );
    // A server may refuse before it has read all; its answer is what counts then.
    outgoing.on("error", reject);
    outgoing.end(options.body);
  });
}
