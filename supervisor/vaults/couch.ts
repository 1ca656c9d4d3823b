import { parseJson, recordOf } from "../../core/json.ts";
import { AnswerTooLarge, askHttp } from "../checks/http-get.ts";
import { codeOf, Failure, textOf } from "../../core/failure.ts";
import type { CouchAnswer } from "./couch-answers.ts";
import { isRejectedPassword, PasswordGate } from "./password-gate.ts";
import { withoutTrailingSlashes } from "../../core/trailing-slashes.ts";

type CouchMethod = "GET" | "PUT" | "POST" | "DELETE";

export interface CouchAsk {
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  /** Deadline of the complete answer; 30 s by default. */
  readonly timeoutMs?: number;
  /** Throws AnswerTooLarge for a longer answer. */
  readonly maxBytes?: number;
}

/** A CouchDB or the embedded notes store, with the admin's rights. */
export interface Couch {
  /** Without credentials and without a trailing slash. */
  readonly url: string;
  readonly admin: string;
  /** The parsed answer. Throws a CouchRefusal for a status from 400 on, a Failure without an answer. */
  readonly ask: (
    method: CouchMethod,
    path: string,
    options?: CouchAsk,
  ) => Promise<unknown>;
  /** As `ask` with GET, but undefined for 404. */
  readonly find: (path: string, options?: CouchAsk) => Promise<unknown>;
}

interface CouchOptions {
  readonly url: string;
  readonly admin?: string;
  /** Read before every request, so that a rotated password takes effect at once; undefined while there is none. */
  readonly password: () => string | undefined;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** The store answered with a status from 400 on. */
export class CouchRefusal extends Failure {
  readonly status: number;
  readonly code: string;
  readonly reason: string;

  constructor(status: number, code: string, reason: string, what: string) {
    super(
      `the notes store rejected ${what}: ${reason === "" ? code : reason} (${status}).`,
    );
    this.status = status;
    this.code = code;
    this.reason = reason;
  }
}

const DEFAULT_TIMEOUT_MS = 30_000;

/** Every request uses a separate connection and has a deadline, and no request is sent with a password that was just rejected. */
export function openCouch(options: CouchOptions): Couch {
  const url = withoutTrailingSlashes(options.url);
  const admin = options.admin ?? "admin";
  const gate = new PasswordGate({
    password: options.password,
    now: options.now ?? Date.now,
    url,
    attempt: (password) =>
      send(url, "GET", "/_session", basic(admin, password)),
  });
  const ask: Couch["ask"] = async (method, path, options) => {
    const password = await gate.enter();
    const answer = await send(
      url,
      method,
      path,
      basic(admin, password),
      options,
    );
    if (isRejectedPassword(answer)) {
      throw gate.rejected(password, answer);
    }
    return contentOf(answer, `${method} ${path.split("?")[0]}`);
  };
  return {
    url,
    admin,
    ask,
    find: async (path, more) => {
      try {
        return await ask("GET", path, more);
      } catch (error) {
        if (error instanceof CouchRefusal && error.status === 404) {
          return undefined;
        }
        throw error;
      }
    },
  };
}

/** The same store with shorter deadlines, for pages. */
export function impatient(couch: Couch, ms: number): Couch {
  const hasten = (options: CouchAsk = {}): CouchAsk => ({
    ...options,
    timeoutMs: Math.min(options.timeoutMs ?? ms, ms),
  });
  return {
    ...couch,
    ask: (method, path, options) => couch.ask(method, path, hasten(options)),
    find: (path, options) => couch.find(path, hasten(options)),
  };
}

/** The value of an Authorization header. */
export function basic(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`;
}

/**
 * One request; rejects with a Failure if no answer arrives in time. Does not use `nano`: in version 11 a truncated answer
 * that is not JSON settles no promise and ends the process by an unhandled rejection (its responseHandler has no catch).
 */
async function send(
  url: string,
  method: CouchMethod,
  path: string,
  authorization: string,
  {
    body,
    signal,
    timeoutMs = DEFAULT_TIMEOUT_MS,
    maxBytes = Infinity,
  }: CouchAsk = {},
): Promise<CouchAnswer> {
  const deadline = AbortSignal.timeout(timeoutMs);
  // `_compact` and its like require the type even without a body.
  const isJson = method === "POST" || body !== undefined;
  try {
    const answer = await askHttp(`${url}${path}`, {
      method,
      headers: {
        accept: "application/json",
        authorization,
        ...(isJson ? { "content-type": "application/json" } : {}),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      maxBody: maxBytes,
      signal:
        signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
    });
    return { status: answer.status, text: answer.body };
  } catch (error) {
    if (signal?.aborted === true) {
      throw signal.reason;
    }
    if (error instanceof AnswerTooLarge) {
      throw error;
    }
    throw noAnswer(url, deadline.aborted ? timeoutMs : undefined, error);
  }
}

function noAnswer(
  url: string,
  afterMs: number | undefined,
  error: unknown,
): Failure {
  const why =
    afterMs === undefined
      ? (codeOf(error) ?? textOf(error))
      : `no answer within ${Math.round(afterMs / 1000)} s`;
  return new NoAnswer(
    `the notes store at ${url} does not respond (${why}): run \`hearth status\`.`,
    error,
  );
}

/** No answer from the store's address. */
export class NoAnswer extends Failure {}

/** Whether the store or the program failed, rather than a single note. */
export function isStoreFailure(error: unknown): boolean {
  return (
    error instanceof NoAnswer ||
    error instanceof CouchRefusal ||
    !(error instanceof Failure)
  );
}

function contentOf({ status, text }: CouchAnswer, what: string): unknown {
  const content = parseJson(text);
  if (content === undefined) {
    throw new CouchRefusal(
      status,
      "not JSON",
      "the server at this address is not a CouchDB",
      what,
    );
  }
  if (status < 400) {
    return content;
  }
  const { error, reason } = recordOf(content);
  throw new CouchRefusal(
    status,
    String(error ?? status),
    String(reason ?? ""),
    what,
  );
}
