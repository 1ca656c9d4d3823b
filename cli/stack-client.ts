import {
  askHttp,
  type HttpAnswer,
  type HttpAsk,
} from "../supervisor/checks/http-get.ts";
import { authorizationFor } from "../supervisor/credentials.ts";
import { locateHome, type Home } from "../supervisor/home/home.ts";
import { readVariable, type Environment } from "../core/environment.ts";
import { Failure, codeOf, textOf } from "../core/failure.ts";
import {
  aliveIn,
  readRunFile,
} from "../supervisor/runtimes/process/run-file.ts";
import { UsageError } from "./verb.ts";

export interface StackClient {
  readonly address: string;
  /** Answers the parsed body; throws a Failure with the supervisor's own sentence for any status but 2xx and 503. */
  readonly ask: (
    method: "GET" | "POST" | "DELETE",
    path: string,
    timeoutMs?: number,
    /** Sent as JSON. */
    body?: unknown,
  ) => Promise<unknown>;
  /** Answers the body as it came; throws as `ask` does, for a 503, too. */
  readonly askText: (path: string, timeoutMs: number) => Promise<string>;
}

export const addressArg = {
  url: {
    type: "string",
    description: "Address of the supervisor, if it is not this project's own",
    valueHint: "http://host:4080",
  },
} as const;

const USUAL_TIMEOUT_MS = 15_000;
const LONGEST_TEXT = 64 * 1024 * 1024;

/** Finds the supervisor: `--url`, HEARTH_URL, else run.json; `stop` ends what is being asked. Throws a Failure when none runs here. */
export function findStack(
  url: string | undefined,
  env: Environment = process.env,
  stop?: AbortSignal,
): StackClient {
  const home = locateHome(env);
  const given = url ?? readVariable("HEARTH_URL", env);
  const address = (given ?? addressHere(home)).replace(/\/+$/, "");
  if (!URL.canParse(address)) {
    throw new Failure(
      `"${address}" is no address: write one such as http://127.0.0.1:4080.`,
    );
  }
  const headers = authorizationFor(home, address, env);
  const proven = "authorization" in headers;
  const send = (
    path: string,
    timeoutMs: number,
    ask: Omit<HttpAsk, "signal">,
  ): Promise<HttpAnswer> =>
    askHttp(`${address}${path}`, {
      ...ask,
      headers: { ...headers, ...ask.headers },
      signal: AbortSignal.any([
        AbortSignal.timeout(timeoutMs),
        ...(stop === undefined ? [] : [stop]),
      ]),
    }).catch((error: unknown) => {
      throw new Failure(
        `the supervisor at ${address} does not answer (${codeOf(error) ?? textOf(error)}): see whether it runs, \`hearth up\` starts it here.`,
      );
    });
  return {
    address,
    ask: async (method, path, timeoutMs = USUAL_TIMEOUT_MS, body) => {
      const content =
        body === undefined
          ? {}
          : {
              headers: { "content-type": "application/json" },
              body: JSON.stringify(body),
            };
      return bodyOf(
        await send(path, timeoutMs, {
          method,
          longestBody: LONGEST_TEXT,
          ...content,
        }),
        address,
        proven,
      );
    },
    askText: async (path, timeoutMs) => {
      const answer = await send(path, timeoutMs, { longestBody: LONGEST_TEXT });
      if (answer.status !== 200) {
        bodyOf(answer, address, proven);
        throw unexpected(address, answer.status);
      }
      return answer.body;
    },
  };
}

/** The supervisor that run.json names, while it lives. */
export function supervisorHere(home: Home) {
  return aliveIn(readRunFile(home.runFile).supervisor);
}

function addressHere(home: Home): string {
  const supervisor = supervisorHere(home);
  if (supervisor === undefined) {
    throw new Failure("Hearth is not running here: `hearth up` starts it.");
  }
  return supervisor.address;
}

function bodyOf(answer: HttpAnswer, address: string, proven: boolean): unknown {
  let body: unknown;
  try {
    body = JSON.parse(answer.body);
  } catch {
    throw new Failure(
      `what answers at ${address} is no Hearth supervisor (status ${answer.status}): give its address with --url.`,
    );
  }
  if (answer.status < 300 || answer.status === 503) {
    return body;
  }
  if (answer.status === 401) {
    throw new Failure(
      proven
        ? `the supervisor at ${address} has another operator password: set HEARTH_OPERATOR_PASSWORD, or HEARTH_OPERATOR_PASSWORD_FILE to a file with it.`
        : `the supervisor at ${address} asks for the operator password: set HEARTH_OPERATOR_PASSWORD, or HEARTH_OPERATOR_PASSWORD_FILE to a file with it (\`hearth operator password\` shows it on its own host).`,
    );
  }
  const message =
    typeof body === "object" && body !== null && "error" in body
      ? messageOf(body.error)
      : undefined;
  if (answer.status === 404 && message !== undefined) {
    throw new UsageError(message);
  }
  throw message === undefined
    ? unexpected(address, answer.status)
    : new Failure(message);
}

function unexpected(address: string, status: number): Failure {
  return new Failure(
    `the supervisor at ${address} answered ${status}: \`hearth logs supervisor\` on its host says why.`,
  );
}

function messageOf(error: unknown): string | undefined {
  return typeof error === "object" && error !== null && "message" in error
    ? String(error.message)
    : undefined;
}
