import { request, type IncomingHttpHeaders } from "node:http";

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface RawRequest {
  readonly base: string;
  readonly method: string;
  /** Path and query, sent unchanged. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer | undefined;
  /** Whether the body received so far is enough; the connection is then closed. */
  readonly enough?: ((text: string) => boolean) | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Makes the client disconnect once it has received part of the body. */
  readonly left?: AbortSignal | undefined;
}

/** Sends a request unchanged; fetch would normalise the path, the method and the headers. */
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
        const disconnect = (): void => {
          finish();
          outgoing.destroy();
        };
        incoming.on("data", (piece: Buffer) => {
          pieces.push(piece);
          if (
            options.left?.aborted === true ||
            options.enough?.(Buffer.concat(pieces).toString()) === true
          ) {
            disconnect();
          }
        });
        options.left?.addEventListener("abort", () => {
          if (pieces.length > 0) {
            disconnect();
          }
        });
        incoming.on("end", finish);
        incoming.on("error", reject);
      },
    );
    // A server may respond before it has read the whole body; the error is then ignored.
    outgoing.on("error", reject);
    outgoing.end(options.body);
  });
}
