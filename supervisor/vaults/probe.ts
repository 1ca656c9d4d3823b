import { request as requestPlain, type IncomingMessage } from "node:http";
import { request as requestTls } from "node:https";

export interface ProbeRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Streamed. */
  readonly body?: Iterable<Buffer>;
  readonly signal: AbortSignal;
}

export interface ProbeAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** Sends a request as a device does. An untrusted certificate is accepted here; it is reported separately. */
export async function probe(
  url: string,
  ask: ProbeRequest,
): Promise<ProbeAnswer> {
  const response = await send(url, ask);
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
  ask: ProbeRequest,
  awaited: (chunk: Buffer, ms: number) => boolean,
): Promise<{ readonly status: number; readonly ms: number | undefined }> {
  const startedAt = performance.now();
  const response = await send(url, ask);
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

function send(url: string, ask: ProbeRequest): Promise<IncomingMessage> {
  const request = url.startsWith("https:") ? requestTls : requestPlain;
  return new Promise((resolve, reject) => {
    const call = request(
      `${url}${ask.path}`,
      {
        method: ask.method,
        agent: false,
        headers: { connection: "close", ...ask.headers },
        rejectUnauthorized: false,
        signal: ask.signal,
      },
      resolve,
    );
    call.once("error", reject);
    if (ask.body === undefined) {
      call.end();
      return;
    }
    const pieces = ask.body[Symbol.iterator]();
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
