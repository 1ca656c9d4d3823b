import { request as requestPlain, type IncomingMessage } from "node:http";
import { request as requestTls } from "node:https";

export interface ProbeAsk {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as it comes. */
  readonly body?: Iterable<Buffer>;
  readonly signal: AbortSignal;
}

export interface ProbeAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** One request as a device makes it. A certificate that cannot be trusted is let pass: it is reported apart. */
export async function probe(url: string, ask: ProbeAsk): Promise<ProbeAnswer> {
  const response = await begin(url, ask);
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

/** The time until an awaited piece of the answer's body comes, in milliseconds; the request is then given up. */
export async function timeToPiece(
  url: string,
  ask: ProbeAsk,
  awaited: (chunk: Buffer, ms: number) => boolean,
): Promise<{ readonly status: number; readonly ms: number | undefined }> {
  const begun = performance.now();
  const response = await begin(url, ask);
  const status = response.statusCode ?? 0;
  try {
    for await (const chunk of response) {
      const ms = performance.now() - begun;
      if (awaited(chunk as Buffer, ms)) {
        return { status, ms };
      }
    }
    return { status, ms: undefined };
  } finally {
    response.destroy();
  }
}

function begin(url: string, ask: ProbeAsk): Promise<IncomingMessage> {
  const send = url.startsWith("https:") ? requestTls : requestPlain;
  return new Promise((resolve, reject) => {
    const call = send(
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
