import { request, type ClientRequest, type IncomingMessage } from "node:http";
import type { Readable } from "node:stream";

/** Docker's HTTP API at unix://… or tcp://…; the doubles do not dial ssh. */
export interface EngineApi {
  /** JSON in, JSON out; throws the engine's message when the status is above 399. */
  readonly call: (
    method: string,
    path: string,
    body?: unknown,
  ) => Promise<unknown>;
  readonly send: (
    method: string,
    path: string,
    body: Readable | Buffer,
    type: string,
  ) => Promise<string>;
}

export class EngineError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export function engineApi(endpoint: string): EngineApi {
  const unix = /^unix:\/\/(.+)$/.exec(endpoint);
  const tcp = /^tcp:\/\/([^:]+):(\d+)$/.exec(endpoint);
  if (unix === null && tcp === null) {
    throw new Error(
      `the doubles reach engines by unix and tcp, not ${endpoint}`,
    );
  }
  const place =
    unix === null
      ? { host: tcp?.[1], port: Number(tcp?.[2]) }
      : { socketPath: unix[1] };

  async function ask(
    method: string,
    path: string,
    type: string | null,
    write: (to: ClientRequest) => void,
  ): Promise<string> {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request(
        {
          ...place,
          method,
          path,
          headers: type === null ? {} : { "content-type": type },
        },
        resolve,
      );
      sent.on("error", (error) =>
        reject(
          new Error(
            `failed to connect to any docker daemon at ${endpoint}: ${error.message}`,
          ),
        ),
      );
      write(sent);
    });
    const pieces: Buffer[] = [];
    for await (const piece of answer) {
      pieces.push(piece as Buffer);
    }
    const text = Buffer.concat(pieces).toString("utf8");
    const status = answer.statusCode ?? 0;
    if (status > 399) {
      throw new EngineError(status, messageOf(text));
    }
    return text;
  }

  return {
    async call(method, path, body) {
      const text = await ask(
        method,
        path,
        body === undefined ? null : "application/json",
        (to) => to.end(body === undefined ? undefined : JSON.stringify(body)),
      );
      try {
        return JSON.parse(text) as unknown;
      } catch {
        return text;
      }
    },
    send: (method, path, body, type) =>
      ask(method, path, type, (to) => {
        if (Buffer.isBuffer(body)) {
          to.end(body);
        } else {
          body.pipe(to);
        }
      }),
  };
}

function messageOf(text: string): string {
  try {
    return String((JSON.parse(text) as { message?: unknown }).message ?? text);
  } catch {
    return text;
  }
}
