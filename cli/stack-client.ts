import { setTimeout as sleep } from "node:timers/promises";
import { parseJson, recordOf } from "../core/json.ts";
import type { GatewayView } from "../console/http/gateway-routes.ts";
import {
  askHttp,
  type HttpAnswer,
  type HttpAsk,
} from "../supervisor/checks/http-get.ts";
import { authorizationFor, givenPassword } from "../supervisor/credentials.ts";
import { locateHome, type Home } from "../supervisor/home/home.ts";
import { isLocked, startingOrStopping } from "../supervisor/home/lock.ts";
import { readVariable, type Environment } from "../core/environment.ts";
import { Failure, requestReason } from "../core/failure.ts";
import {
  aliveIn,
  readRunFile,
} from "../supervisor/runtimes/process/run-file.ts";
import {
  bearer,
  LoginCredential,
  operatorCredential,
  type Credential,
} from "./stack-credential.ts";
import { UserLogins, type Login } from "./user-login.ts";
import { UsageError } from "./verb.ts";
import { serverAddress } from "../core/server-address.ts";

export interface StackClient {
  readonly address: string;
  /** Returns the parsed body; throws a Failure with the supervisor's message for any status but 2xx and 503. */
  readonly ask: (
    method: "GET" | "POST" | "DELETE",
    path: string,
    timeoutMs?: number,
    /** Sent as JSON. */
    body?: unknown,
  ) => Promise<unknown>;
  /** Returns the body as text; throws like `ask`, also for 503. */
  readonly askText: (path: string, timeoutMs: number) => Promise<string>;
}

export const addressArg = {
  url: {
    type: "string",
    description: "Address of the supervisor (default: the one running here)",
    valueHint: "http://host:4080",
  },
} as const;

const DEFAULT_TIMEOUT_MS = 15_000;
const MAX_TEXT_BYTES = 64 * 1024 * 1024;

/**
 * Finds the supervisor: `--url`, HEARTH_URL, else run.json, else that of the latest `hearth login`. Requests are made by the user
 * who logged in there, unless the operator password is set as a variable. `stop` aborts requests in progress. Throws a Failure
 * when no supervisor is running here.
 */
export function findStack(
  url: string | undefined,
  env: Environment = process.env,
  stop?: AbortSignal,
): StackClient {
  const home = locateHome(env);
  const address = stackAddress(home, url, env);
  const login = loginAt(home, address, env);
  return new HttpStackClient(
    address,
    login === undefined
      ? operatorCredential(authorizationFor(home, address, env))
      : new LoginCredential(new UserLogins(home), login),
    stop,
  );
}

function stackAddress(
  home: Home,
  url: string | undefined,
  env: Environment,
): string {
  const given = url ?? readVariable("HEARTH_URL", env);
  return httpAddress(given ?? addressHere(home), "http://127.0.0.1:4080");
}

/** The address of a server. Throws a Failure for any other text, such as `localhost:4080`, which a URL may be. */
export function httpAddress(text: string, example: string): string {
  const address = serverAddress(text);
  if (!/^https?:\/\//i.test(address) || !URL.canParse(address)) {
    throw new Failure(
      `"${address}" is not an address; write one such as ${example}.`,
    );
  }
  return address;
}

/** The user's login at a console; undefined for the operator. */
function loginAt(
  home: Home,
  address: string,
  env: Environment,
): Login | undefined {
  return givenPassword(env) === undefined
    ? new UserLogins(home).find(address)
    : undefined;
}

/** The login whose rights commands have, at the console that `findStack` finds; undefined for the operator. */
export function currentLogin(
  url: string | undefined,
  env: Environment = process.env,
): Login | undefined {
  const home = locateHome(env);
  const given = url ?? readVariable("HEARTH_URL", env);
  return given === undefined && supervisorHere(home) === undefined
    ? loginAt(home, new UserLogins(home).find()?.address ?? "", env)
    : loginAt(home, stackAddress(home, url, env), env);
}

/** The gateway of a console, for a session of it. */
export async function gatewayOf(
  address: string,
  token: string,
): Promise<GatewayView> {
  const credential = operatorCredential(bearer(token));
  const stack = new HttpStackClient(address, credential, undefined);
  return (await stack.ask("GET", "/api/gateway")) as GatewayView;
}

/** Ends the session of a login at its console. */
export async function endSession({ address, session }: Login): Promise<void> {
  const { status } = await askHttp(`${address}/api/sign-in`, {
    method: "DELETE",
    headers: bearer(session.token),
    signal: AbortSignal.timeout(DEFAULT_TIMEOUT_MS),
  });
  // 401: it has ended already.
  if (status >= 300 && status !== 401) {
    throw unexpected(address, status);
  }
}

class HttpStackClient implements StackClient {
  readonly address: string;
  readonly #credential: Credential;
  readonly #stop: AbortSignal | undefined;

  constructor(
    address: string,
    credential: Credential,
    stop: AbortSignal | undefined,
  ) {
    this.address = address;
    this.#credential = credential;
    this.#stop = stop;
  }

  readonly ask: StackClient["ask"] = async (
    method,
    path,
    timeoutMs = DEFAULT_TIMEOUT_MS,
    body,
  ) => {
    const content =
      body === undefined
        ? {}
        : {
            headers: { "content-type": "application/json" },
            body: JSON.stringify(body),
          };
    return this.#bodyOf(
      await this.#send(path, timeoutMs, { method, ...content }),
    );
  };

  readonly askText: StackClient["askText"] = async (path, timeoutMs) => {
    const answer = await this.#send(path, timeoutMs, {});
    if (answer.status !== 200) {
      this.#bodyOf(answer);
      throw unexpected(this.address, answer.status);
    }
    return answer.body;
  };

  async #send(
    path: string,
    timeoutMs: number,
    request: Omit<HttpAsk, "signal" | "maxBody">,
  ): Promise<HttpAnswer> {
    const answer = await this.#sendOnce(path, timeoutMs, request);
    return answer.status === 401 && (await this.#credential.renew())
      ? this.#sendOnce(path, timeoutMs, request)
      : answer;
  }

  #sendOnce(
    path: string,
    timeoutMs: number,
    request: Omit<HttpAsk, "signal" | "maxBody">,
  ): Promise<HttpAnswer> {
    return askHttp(`${this.address}${path}`, {
      ...request,
      maxBody: MAX_TEXT_BYTES,
      headers: { ...this.#credential.headers(), ...request.headers },
      signal: AbortSignal.any([
        AbortSignal.timeout(timeoutMs),
        ...(this.#stop === undefined ? [] : [this.#stop]),
      ]),
    }).catch((error: unknown) => {
      throw new Failure(
        `the supervisor at ${this.address} does not respond (${requestReason(error)}): check that it is running; \`hearth up\` starts it on this machine.`,
      );
    });
  }

  #bodyOf(answer: HttpAnswer): unknown {
    return bodyOf(answer, this.address, this.#credential);
  }
}

/** The running supervisor that run.json names. */
export function supervisorHere(home: Home) {
  return aliveIn(readRunFile(home.runFile).supervisor);
}

/** Throws a Failure while any part of Hearth is running here. */
export function needStopped(home: Home): void {
  const { services } = readRunFile(home.runFile);
  const isRunning = Object.values(services).some((entry) => aliveIn(entry));
  if (isLocked(home.lock) || isRunning) {
    throw new Failure(
      "Hearth is running: stop it with `hearth down`, then run the command again.",
    );
  }
}

const POLL_EVERY_MS = 100;

/** The running supervisor, as soon as one that is starting or stopping here has done so. Throws a Failure if that takes longer. */
export async function untilSupervisorHere(
  home: Home,
  withinMs: number,
): Promise<ReturnType<typeof supervisorHere>> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const supervisor = supervisorHere(home);
    if (supervisor !== undefined || !isLocked(home.lock)) {
      return supervisor;
    }
    if (performance.now() > deadline) {
      throw new Failure(startingOrStopping(home.root));
    }
    await sleep(POLL_EVERY_MS);
  }
}

function addressHere(home: Home): string {
  const address =
    supervisorHere(home)?.address ?? new UserLogins(home).find()?.address;
  if (address === undefined) {
    throw new Failure(
      "Hearth is not running here: run `hearth up` to start it.",
    );
  }
  return address;
}

/** The gateway's answer on a route of the supervisor: their ports are easily confused. */
const FROM_GATEWAY = /^Route [A-Z]+ \S+ not found\./;

function bodyOf(
  answer: HttpAnswer,
  address: string,
  credential: Credential,
): unknown {
  const body = parseJson(answer.body);
  const { error } = recordOf(body);
  // The gateway answers on `/api` as Ollama does: with a text.
  const message =
    typeof error === "string" ? error : recordOf(error)["message"];
  if (body === undefined || FROM_GATEWAY.test(String(message))) {
    throw new Failure(
      `no Hearth supervisor at ${address} (status ${answer.status}): set its address with --url.`,
    );
  }
  if (answer.status < 300 || answer.status === 503) {
    return body;
  }
  if (answer.status === 401) {
    throw new Failure(credential.advice(address));
  }
  if (message === undefined) {
    throw unexpected(address, answer.status);
  }
  throw [400, 404].includes(answer.status)
    ? new UsageError(String(message))
    : new Failure(String(message));
}

function unexpected(address: string, status: number): Failure {
  return new Failure(
    `the supervisor at ${address} responded with status ${status}: run \`hearth logs supervisor\` on its host for the reason.`,
  );
}
