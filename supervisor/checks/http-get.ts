import { constants } from "node:buffer";
import { request as requestPlain } from "node:http";
import { request as requestTls } from "node:https";

export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

export interface HttpAsk {
  readonly method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Certificate authority of an https address (PEM); by default those that Node trusts. */
  readonly ca?: string;
  /** Bytes; 4 MiB by default. */
  readonly maxBody?: number;
  readonly signal: AbortSignal;
}

const DEFAULT_MAX_BODY_BYTES = 4 * 1024 * 1024;

/** The answer is larger than the caller or a string allows. */
export class AnswerTooLarge extends Error {}

/** One request on its own connection, so that a stopping server never waits for it. Rejects on network errors. */
export function askHttp(url: string, ask: HttpAsk): Promise<HttpAnswer> {
  const maxBody = Math.min(
    ask.maxBody ?? DEFAULT_MAX_BODY_BYTES,
    constants.MAX_STRING_LENGTH,
  );
  const send = url.startsWith("https:") ? requestTls : requestPlain;
  return new Promise((resolve, reject) => {
    const call = send(
      url,
      {
        method: ask.method ?? "GET",
        agent: false,
        headers: {
          connection: "close",
          // Node does not frame the body of a DELETE without it.
          ...(ask.body === undefined
            ? {}
            : { "content-length": Buffer.byteLength(ask.body) }),
          ...ask.headers,
        },
        signal: ask.signal,
        ...(ask.ca === undefined ? {} : { ca: ask.ca }),
      },
      (response) => {
        const chunks: Buffer[] = [];
        let size = 0;
        response.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > maxBody) {
            response.destroy(
              new AnswerTooLarge(
                `the answer is larger than ${Math.floor(maxBody / 1024 / 1024)} MiB`,
              ),
            );
          }
          chunks.push(chunk);
        });
        response.once("error", reject);
        response.once("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            body: Buffer.concat(chunks).toString("utf8"),
          }),
        );
      },
    );
    call.once("error", reject);
    call.end(ask.body);
  });
}

/** True for a 200 answer. */
export async function answersOk(
  url: string,
  signal: AbortSignal,
): Promise<boolean> {
  return (await askHttp(url, { signal })).status === 200;
}
