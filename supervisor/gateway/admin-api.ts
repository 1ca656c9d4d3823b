import { validateHeaderValue } from "node:http";
import { parseJson } from "../../core/json.ts";
import { currentAuthor } from "../history/author.ts";
import { askHttp, type HttpAnswer } from "../checks/http-get.ts";
import { readVariable, type Environment } from "../../core/environment.ts";
import { Failure, requestReason } from "../../core/failure.ts";
import { serverAddress } from "../../core/server-address.ts";

/** The admin API of the gateway, with the master key. */
export interface AdminApi {
  readonly address: string;
  /** Returns the parsed body; throws a {@link Refusal} for any status but 200, an {@link Unanswered} if no gateway answers. */
  readonly ask: (
    method: "GET" | "POST" | "PATCH" | "DELETE",
    path: string,
    body?: Readonly<Record<string, unknown>>,
  ) => Promise<unknown>;
  /**
   * Sends a call whose answer arrives in parts; throws like `ask` unless the answer starts. Errors of its body are the
   * network's. Throws the reason of `signal` once that is aborted.
   */
  readonly stream: (
    path: string,
    body: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ) => Promise<StreamedAnswer>;
  /** The same gateway with another key. */
  readonly as: (key: string) => AdminApi;
  /** The same gateway with the rights of a user. */
  readonly actingFor: (userId: string) => AdminApi;
}

interface StreamedAnswer {
  /** The call in the ledger. */
  readonly callId: string;
  readonly body: AsyncIterable<Uint8Array>;
}

/** A request that the gateway rejected, with its message. */
export class Refusal extends Failure {
  readonly status: number;
  /** The invalid field. */
  readonly param: string | null;

  constructor(sentence: string, status: number, param: string | null) {
    super(sentence);
    this.name = "Refusal";
    this.status = status;
    this.param = param;
  }
}

/** No gateway answered. */
export class Unanswered extends Failure {
  /** Path of the console's page about it; null if there is none. */
  page: string | null = null;

  constructor(address: string, reason: string) {
    super(
      `the gateway at ${address} does not answer (${reason}): run \`hearth status\`.`,
    );
    this.name = "Unanswered";
  }
}

/** Pages with prompts in their metadata are smaller. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** GATEWAY_URL as {@link serverAddress} gives it; undefined if it is not set. */
export function gatewayAddress(env: Environment): string | undefined {
  const url = readVariable("GATEWAY_URL", env);
  return url === undefined ? undefined : serverAddress(url);
}

/** `credential` returns the master key, for each request: `hearth rotate` changes it while the supervisor runs. The audit log attributes changes to the current author. */
export function openAdminApi(options: {
  readonly address: string;
  readonly credential: () => string;
  readonly timeoutMs: number;
  /** Requests have the rights of this user. */
  readonly actingFor?: string;
}): AdminApi {
  const { address, timeoutMs } = options;
  return {
    address,
    as: (key) => openAdminApi({ address, timeoutMs, credential: () => key }),
    actingFor: (userId) => openAdminApi({ ...options, actingFor: userId }),
    ask: async (method, path, body) => {
      const answer = await askHttp(`${address}${path}`, {
        method,
        headers: {
          ...headersOf(options),
          "x-hearth-changed-by": headerText(currentAuthor()),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        maxBody: MAX_BODY_BYTES,
        signal: AbortSignal.timeout(timeoutMs),
      }).catch((error: unknown) => {
        throw new Unanswered(address, requestReason(error));
      });
      return bodyOf(answer, address);
    },
    stream: async (path, body, signal) => {
      const answer = await fetch(`${address}${path}`, {
        method: "POST",
        headers: headersOf(options),
        body: JSON.stringify(body),
        signal,
      }).catch((error: unknown) => {
        signal.throwIfAborted();
        throw unanswered(address, error);
      });
      if (answer.ok && answer.body !== null) {
        const callId = answer.headers.get("x-hearth-call-id") ?? "";
        return { callId, body: answer.body };
      }
      const text = await answer.text().catch(() => "");
      throw refusalOf(answer.status, parsedOf(text, answer.status, address));
    },
  };
}

function headersOf({
  address,
  credential,
  actingFor,
}: {
  readonly address: string;
  readonly credential: () => string;
  readonly actingFor?: string;
}): Record<string, string> {
  const authorization = `Bearer ${credential()}`;
  try {
    validateHeaderValue("authorization", authorization);
  } catch {
    throw new Failure(
      `the key for the gateway at ${address} has a character that HTTP does not allow, such as a line break: set it again (the master key is PROXY_MASTER_KEY).`,
    );
  }
  return {
    authorization,
    "content-type": "application/json",
    ...(actingFor === undefined
      ? {}
      : { "x-hearth-acting-user": headerText(actingFor) }),
  };
}

/** `fetch` wraps the error of the network. */
function unanswered(address: string, error: unknown): Unanswered {
  const { cause = error } = error as { readonly cause?: unknown };
  return new Unanswered(address, requestReason(cause));
}

/** As headers carry text: its UTF-8 bytes. */
function headerText(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/** The address of the gateway in snippets; `otherwise` if not configured. */
export function publicAddress(env: Environment, otherwise: string): string {
  return readVariable("GATEWAY_PUBLIC_URL", env) ?? otherwise;
}

function bodyOf({ status, body }: HttpAnswer, address: string): unknown {
  const parsed = parsedOf(body, status, address);
  if (status === 200) {
    return parsed;
  }
  throw refusalOf(status, parsed);
}

function parsedOf(body: string, status: number, address: string): unknown {
  const parsed = parseJson(body);
  if (parsed === undefined) {
    throw new Failure(
      `the server at ${address} is not a Hearth gateway (status ${status}): check the address.`,
    );
  }
  return parsed;
}

function refusalOf(status: number, parsed: unknown): Refusal {
  const { error } = parsed as {
    error?: { readonly message?: unknown; readonly param?: unknown };
  };
  return new Refusal(
    typeof error?.message === "string"
      ? withoutRoutes(error.message)
      : `the gateway answered ${status}.`,
    status,
    typeof error?.param === "string" ? error.param : null,
  );
}

const ROUTE_ADVICE =
  /(?<=\.) (?:(?:Add|Change|Create|Update) (?:it|them) with )?(?:GET|POST|PATCH) \/\S+[^.]*\.$/;

/** The gateway's advice for its clients, "Create it with POST /team/new.", is none for readers of pages and users of commands. */
function withoutRoutes(message: string): string {
  return message.replace(ROUTE_ADVICE, "");
}
