import type { IncomingMessage, ServerResponse } from "node:http";
import type { Login } from "../auth/authenticate.ts";
import type { User } from "../auth/accounts.ts";
import type { Database } from "../database.ts";
import type { DatabaseAnswer } from "../database-calls.ts";
import type { ChangesEnd } from "../store/protocol.ts";
import type { Target } from "./target.ts";

/** One request and its response. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The method, after `X-HTTP-Method-Override`. */
  readonly method: string;
  readonly target: Target;
  readonly user: User;
  readonly login: Login;
  /** Aborted when the client disconnects or loses the right to this request. */
  readonly gone: AbortSignal;
}

export interface DatabaseExchange extends Exchange {
  readonly database: Database;
}

type Headers = Readonly<Record<string, string>>;

/** Answers with a JSON value. */
export function sendJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Headers = {},
): void {
  sendText(response, status, `${JSON.stringify(value)}\n`, headers);
}

/** Answers with a whole body; JSON unless the headers say otherwise. */
export function sendText(
  response: ServerResponse,
  status: number,
  text: string,
  headers: Headers,
): void {
  const bytes = Buffer.from(text);
  response.writeHead(status, {
    ...(status === 304 ? {} : { "content-type": "application/json" }),
    ...headers,
    ...(status === 304 ? {} : { "content-length": bytes.length }),
  });
  response.end(response.req.method === "HEAD" ? undefined : bytes);
}

/** Streams a database's answer to the client. */
export async function sendAnswer(
  { response, request }: Exchange,
  answer: DatabaseAnswer,
): Promise<void> {
  const headers = withAddress(request, answer.headers);
  if (answer.chunks === undefined) {
    sendText(response, answer.status, answer.body ?? "", headers);
    return;
  }
  response.writeHead(answer.status, {
    "content-type": "application/json",
    ...headers,
  });
  if (response.req.method === "HEAD") {
    answer.discard();
  } else {
    await pipeChunks(response, answer.chunks);
  }
  response.end();
}

/** Writes chunks as fast as the client reads them; returns the generator's return value. */
export async function pipeChunks(
  response: ServerResponse,
  chunks: AsyncGenerator<Uint8Array, ChangesEnd | undefined>,
): Promise<ChangesEnd | undefined> {
  for (;;) {
    const next = await chunks.next();
    if (next.done === true) {
      return next.value;
    }
    if (!response.write(next.value) && !response.destroyed) {
      await drained(response);
    }
  }
}

async function drained(response: ServerResponse): Promise<void> {
  await new Promise<void>((resolve) => {
    const go = (): void => {
      response.off("drain", go);
      response.off("close", go);
      resolve();
    };
    response.on("drain", go);
    response.on("close", go);
  });
}

/** Makes a `Location` absolute, with the host that the client used. */
export function withAddress(
  request: IncomingMessage,
  headers: Headers,
): Headers {
  if (headers.location === undefined) {
    return headers;
  }
  const scheme = request.headers["x-forwarded-proto"] ?? "http";
  const host =
    request.headers["x-forwarded-host"] ?? request.headers.host ?? "localhost";
  return {
    ...headers,
    location: `${String(scheme)}://${String(host)}${headers.location}`,
  };
}
