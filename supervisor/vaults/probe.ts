import { request as requestPlain, type IncomingMessage } from "node:http";
import { request as requestTls } from "node:https";

interface ProbeOptions {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Streamed. */
  readonly body?: Iterable<Buffer>;
  readonly signal: AbortSignal;
}

interface ProbeAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** Sends a request as a device does. An untrusted certificate is accepted here; it is reported separately. */
export async function probe(
  url: string,
  options: ProbeOptions,
): Promise<ProbeAnswer> {
  const response = await send(url, options);
  const chunks: Buffer[] = [];
  for await (const chunk of response) {
    chunks.push(chunk as Buffer);
  }
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: Buffer.concat(chunks).toString("utf8"),
  };
}

/** The time until an awaited chunk of the response body arrives, in milliseconds; then the request is aborted. */
export async function timeToPiece(
  url: string,
  options: ProbeOptions,
  awaited: (chunk: Buffer, ms: number) => boolean,
): Promise<{ readonly status: number; readonly ms: number | undefined }> {
  const startedAt = performance.now();
  const response = await send(url, options);
  const status = response.statusCode ?? 0;
  try {
    for await (const chunk of response) {
      const ms = performance.now() - startedAt;
      if (awaited(chunk as Buffer, ms)) {
        return { status, ms };
      }
    }
    return { status, ms: undefined };
  } finally {
    response.destroy();
  }
}

function send(url: string, options: ProbeOptions): Promise<IncomingMessage> {
  const request = url.startsWith("https:") ? requestTls : requestPlain;
  return new Promise((resolve, reject) => {
    const call = request(
      `${url}${options.path}`,
      {
        method: options.method,
        agent: false,
        headers: { connection: "close", ...options.headers },
        rejectUnauthorized: false,
        signal: options.signal,
      },
      resolve,
    );
    call.once("error", reject);
    if (options.body === undefined) {
      call.end();
      return;
    }
    const pieces = options.body[Symbol.iterator]();
    const more = (): void => {
      for (let piece = pieces.next(); !piece.done; piece = pieces.next()) {
        if (!call.write(piece.value)) {
          call.once("drain", more);
          return;
        }
      }
      call.end();
    };
    more();
  });
}
