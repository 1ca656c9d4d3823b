import { askHttp } from "../checks/http-get.ts";
import { Failure, codeOf, textOf } from "../../core/failure.ts";

export type CouchMethod = "GET" | "PUT" | "POST" | "DELETE";

export interface CouchAsk {
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  /** The longest wait for the whole answer; 30 s unless told. */
  readonly timeoutMs?: number;
}

/** A CouchDB or the embedded notes store, asked as its admin. */
export interface Couch {
  /** Without credentials and without a trailing slash. */
  readonly url: string;
  readonly admin: string;
  /** The parsed answer. Throws a CouchRefusal for a status from 400 on, a Failure when nothing answers. */
  readonly ask: (
    method: CouchMethod,
    path: string,
    options?: CouchAsk,
  ) => Promise<unknown>;
  /** As `ask` with GET, but undefined for 404. */
  readonly look: (path: string, options?: CouchAsk) => Promise<unknown>;
}

export interface CouchOptions {
  readonly url: string;
  readonly admin?: string;
  /** Read before every request, so that a rotated password counts at once; undefined while there is none. */
  readonly password: () => string | undefined;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** The store said no. */
export class CouchRefusal extends Failure {
  readonly status: number;
  readonly code: string;
  readonly reason: string;

  constructor(status: number, code: string, reason: string, what: string) {
    super(
      `the notes store refused ${what}: ${reason === "" ? code : reason} (${status}).`,
    );
    this.status = status;
    this.code = code;
    this.reason = reason;
  }
}

const USUAL_TIMEOUT_MS = 30_000;
/**
 * Waits after a refused password before the same one is tried again: five refusals within five minutes lock the admin out.
 * The first wait is short because a CouchDB refuses the right one for a moment after it was changed.
 */
const WAITS_AFTER_REFUSAL_MS = [5000, 600_000] as const;

/** Every request is on a connection of its own, has a deadline, and is not sent with a password that was just refused. */
export function openCouch(options: CouchOptions): Couch {
  const url = options.url.replace(/\/+$/, "");
  const admin = options.admin ?? "admin";
  const gate = passwordGate(options.password, options.now ?? Date.now, url);
  const ask: Couch["ask"] = async (method, path, { body, ...rest } = {}) => {
    const password = await gate.enter((candidate) =>
      send(url, "GET", "/_session", basic(admin, candidate), rest),
    );
    const answer = await send(
      url,
      method,
      path,
      basic(admin, password),
      rest,
      body,
    );
    if (isRefusedPassword(answer)) {
      throw gate.refused(password, answer);
    }
    return parsed(answer, `${method} ${path.split("?")[0]}`);
  };
  return {
    url,
    admin,
    ask,
    look: async (path, more) => {
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

/** The same store, but nothing is waited for longer than so many milliseconds: somebody looks at a page meanwhile. */
export function impatient(couch: Couch, ms: number): Couch {
  const hasten = (options: CouchAsk = {}): CouchAsk => ({
    ...options,
    timeoutMs: Math.min(options.timeoutMs ?? ms, ms),
  });
  return {
    ...couch,
    ask: (method, path, options) => couch.ask(method, path, hasten(options)),
    look: (path, options) => couch.look(path, hasten(options)),
  };
}

const waitAfter = (refusals: number): number =>
  WAITS_AFTER_REFUSAL_MS[
    Math.min(refusals, WAITS_AFTER_REFUSAL_MS.length) - 1
  ] ?? 0;

interface RawAnswer {
  readonly status: number;
  readonly text: string;
}

/** Lets a password through once one single request has shown that it is right, and holds it back while it was refused. */
function passwordGate(
  read: () => string | undefined,
  now: () => number,
  url: string,
) {
  let proven: { password: string; by: Promise<void> } | undefined;
  let refusal: { password: string; at: number; times: number } | undefined;

  /** Wrong passwords of others from this address: the store says nothing about this one, and further attempts do not count. */
  function lockedOut(password: string): Failure {
    refusal = { password, at: now(), times: 1 };
    proven = undefined;
    return new Failure(
      `the notes store at ${url} has locked the admin out for up to five minutes, because of wrong passwords from this address; it is tried again meanwhile.`,
    );
  }

  function refused(password: string, answer: RawAnswer): Failure {
    if (answer.status === 403) {
      return lockedOut(password);
    }
    const again = refusal?.password === password;
    // Several requests under way at once are one refusal.
    if (!again || now() - refusal!.at >= WAITS_AFTER_REFUSAL_MS[0]) {
      refusal = {
        password,
        at: now(),
        times: again ? refusal!.times + 1 : 1,
      };
    }
    proven = undefined;
    return new Failure(
      `the notes store at ${url} refuses the admin's password: put the right one into NOTES_ADMIN_PASSWORD (or its file); until then it is asked no more, so that nobody is locked out.`,
    );
  }

  function mayTry(password: string): boolean {
    if (refusal?.password !== password) {
      return true;
    }
    return now() - refusal.at >= waitAfter(refusal.times);
  }

  async function prove(
    password: string,
    trial: (password: string) => Promise<RawAnswer>,
  ): Promise<void> {
    const answer = await trial(password);
    if (isRefusedPassword(answer)) {
      throw refused(password, answer);
    }
    refusal = undefined;
  }

  return {
    refused,
    enter: async (
      trial: (password: string) => Promise<RawAnswer>,
    ): Promise<string> => {
      const password = read();
      if (password === undefined) {
        throw new Failure(
          "the notes store's admin password is not known: set NOTES_ADMIN_PASSWORD or NOTES_ADMIN_PASSWORD_FILE.",
        );
      }
      if (proven?.password !== password) {
        if (!mayTry(password)) {
          throw new Failure(
            `the notes store at ${url} has refused this admin password before: it is not tried again until ${new Date(refusal!.at + waitAfter(refusal!.times)).toISOString()}, or until NOTES_ADMIN_PASSWORD (or its file) changes.`,
          );
        }
        const by = prove(password, trial);
        proven = { password, by };
        by.catch(() => {
          if (proven?.by === by) {
            proven = undefined;
          }
        });
      }
      await proven.by;
      return password;
    },
  };
}

/** A wrong password is 401; a locked user's, right or wrong, 403. The admin meets neither otherwise. */
function isRefusedPassword({ status, text }: RawAnswer): boolean {
  return status === 401 || (status === 403 && text.includes("locked"));
}

/** The value of an Authorization header. */
export function basic(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`;
}

/** One request; rejects with a Failure when nothing answers in time. */
async function send(
  url: string,
  method: CouchMethod,
  path: string,
  authorization: string,
  { signal, timeoutMs = USUAL_TIMEOUT_MS }: Omit<CouchAsk, "body"> = {},
  body?: unknown,
): Promise<RawAnswer> {
  const deadline = AbortSignal.timeout(timeoutMs);
  // `_compact` and its like want the type even without a body.
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
      maxBody: Infinity,
      signal:
        signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
    });
    return { status: answer.status, text: answer.body };
  } catch (error) {
    if (signal?.aborted === true) {
      throw signal.reason;
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
      : `nothing came within ${Math.round(afterMs / 1000)} s`;
  return new NoAnswer(
    `the notes store at ${url} does not answer (${why}): \`hearth status\` shows whether it runs.`,
    error,
  );
}

/** Nothing answered at the store's address. */
export class NoAnswer extends Failure {}

/** Whether the store itself failed, or the program, as against a note that cannot be read. */
export function isStoreFailure(error: unknown): boolean {
  return (
    error instanceof NoAnswer ||
    error instanceof CouchRefusal ||
    !(error instanceof Failure)
  );
}

function parsed({ status, text }: RawAnswer, what: string): unknown {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new CouchRefusal(
      status,
      "no JSON",
      "what answers is no CouchDB",
      what,
    );
  }
  if (status < 400) {
    return body;
  }
  const { error, reason } = (body ?? {}) as {
    error?: unknown;
    reason?: unknown;
  };
  throw new CouchRefusal(
    status,
    String(error ?? status),
    String(reason ?? ""),
    what,
  );
}
