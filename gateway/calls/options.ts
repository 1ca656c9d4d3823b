import type { IncomingHttpHeaders } from "node:http";
import type { Caller } from "../access/callers.ts";
import type { GatewayConfig } from "../config/types.ts";
import { faultOfName } from "../ledger/names.ts";
import { invalidParam } from "../http/errors.ts";
import { isRecord, listOf, textOf } from "../../core/json.ts";
import type { Place } from "../runners/line.ts";
import type { CallBody } from "./body.ts";
import { placeOf } from "./priority.ts";

/** A caller's options for the gateway; they do not reach a provider. */
export interface CallOptions {
  /** For all attempts together; null: the router's. */
  readonly timeoutMs: number | null;
  /** null: the router's or the deployment's. */
  readonly numRetries: number | null;
  /** To try instead of the configured ones, in order; null: not set. */
  readonly fallbacks: readonly Fallback[] | null;
  /** Whether parameters that a provider does not support are dropped, or which of them; null: as the deployment or the configuration says. */
  readonly dropParams: boolean | readonly string[] | null;
  /** Neither the prompt nor the answer is stored. */
  readonly unlogged: boolean;
  /** Where it stands among calls that wait for a slot. */
  readonly place: Place;
  /** Test hooks, for keys that may use them. */
  readonly mock: MockOptions;
}

/** A model to try after the one called. */
export interface Fallback {
  readonly alias: string;
  /** Fields of the body that differ for it, such as `messages`; null: none. */
  readonly fields: Readonly<Record<string, unknown>> | null;
}

/** A failure that a call asks for: `fallbacks`, `context_window` and `content_policy` fail each attempt of the alias called. */
export type MockFailure =
  "fallbacks" | "context_window" | "content_policy" | "rate_limit" | "timeout";

interface MockOptions {
  readonly response: string | null;
  readonly failure: MockFailure | null;
}

/** Whether the caller keeps its prompt and answer out of every log. */
export function isUnlogged(
  { general }: Pick<GatewayConfig, "general">,
  { unlogged }: Pick<CallOptions, "unlogged">,
): boolean {
  return unlogged && general.unloggedCalls;
}

const MAX_RETRIES = 10;
const MAX_FALLBACKS = 10;
export const NO_MOCK: MockOptions = { response: null, failure: null };

const MOCK_FAILURES: readonly (readonly [string, MockFailure])[] = [
  ["mock_timeout", "timeout"],
  ["mock_testing_fallbacks", "fallbacks"],
  ["mock_testing_context_fallbacks", "context_window"],
  ["mock_testing_content_policy_fallbacks", "content_policy"],
  ["mock_testing_rate_limit_error", "rate_limit"],
];

/** Reads the fields of a body that change how the gateway carries a call out, and the equivalent headers. */
export function readCallOptions(
  body: CallBody,
  headers: IncomingHttpHeaders,
  caller: Caller,
  alias: string,
): CallOptions {
  const timeout = numberOf(
    "timeout",
    body["timeout"] ??
      body["request_timeout"] ??
      headers["x-hearth-timeout"] ??
      headers["x-litellm-timeout"],
    86_400,
  );
  return {
    timeoutMs: timeout === null ? null : timeout * 1_000,
    numRetries: numberOf(
      "num_retries",
      body["num_retries"] ??
        body["max_retries"] ??
        headers["x-hearth-num-retries"] ??
        headers["x-litellm-num-retries"],
      MAX_RETRIES,
    ),
    fallbacks:
      body["disable_fallbacks"] === true
        ? []
        : fallbacksOf(body["fallbacks"], alias, body.model),
    dropParams: dropParamsOf(body["drop_params"]),
    unlogged:
      body["no-log"] === true || body["turn_off_message_logging"] === true,
    place: placeOf(body, caller),
    mock: mayMock(caller) ? mockOf(body) : NO_MOCK,
  };
}

function mockOf(body: CallBody): MockOptions {
  const { mock_response: response } = body;
  return {
    response: typeof response === "string" ? response : null,
    failure: MOCK_FAILURES.find(([name]) => body[name] === true)?.[1] ?? null,
  };
}

/** A mock answer costs what a provider's would, but a key must not be able to invent answers: an admin allows it. */
function mayMock(caller: Caller): boolean {
  return (
    caller.kind === "master" ||
    caller.metadata["allow_client_mock_response"] === true
  );
}

function numberOf(field: string, value: unknown, most: number): number | null {
  if (value === undefined || value === null) {
    return null;
  }
  // Number() would throw for some other values, or convert them to a number that was not sent.
  const number =
    typeof value === "number" || (typeof value === "string" && value !== "")
      ? Number(value)
      : NaN;
  if (Number.isFinite(number) && number >= 0 && number <= most) {
    return number;
  }
  throw invalidParam(field, `must be a number from 0 to ${most}.`);
}

function dropParamsOf(value: unknown): CallOptions["dropParams"] {
  return typeof value === "boolean"
    ? value
    : Array.isArray(value)
      ? value.map(textOf)
      : null;
}

/**
 * Names, objects with a `model` and the fields that differ for it, or as in the configuration lists of names by alias.
 * `named`: what the caller calls the alias.
 */
function fallbacksOf(
  value: unknown,
  alias: string,
  named: string,
): readonly Fallback[] | null {
  if (value === undefined || value === null) {
    return null;
  }
  const given = Array.isArray(value)
    ? value.flatMap((entry: unknown) => byAlias(entry, [named, alias]) ?? entry)
    : [];
  const fallbacks = given.map(fallbackOf).filter((one) => one !== null);
  if (
    Array.isArray(value) &&
    given.length <= MAX_FALLBACKS &&
    fallbacks.length === given.length
  ) {
    return fallbacks;
  }
  throw invalidParam(
    "fallbacks",
    `must be a list of at most ${MAX_FALLBACKS} model names, or of objects with a \`model\` and the fields that differ for it.`,
  );
}

/** The names in `{"ALIAS": ["NAME", …]}` for this alias; undefined: an entry of another shape. */
function byAlias(
  entry: unknown,
  names: readonly string[],
): readonly unknown[] | undefined {
  if (!isRecord(entry) || typeof entry["model"] === "string") {
    return undefined;
  }
  const lists = Object.entries(entry);
  if (lists.length === 0 || !lists.every(([, list]) => Array.isArray(list))) {
    return undefined;
  }
  return lists.flatMap(([alias, list]) =>
    alias === "*" || names.includes(alias) ? listOf(list) : [],
  );
}

function fallbackOf(entry: unknown): Fallback | null {
  const { model: alias, ...fields } = isRecord(entry)
    ? entry
    : { model: entry };
  if (typeof alias !== "string" || faultOfName(alias) !== null) {
    return null;
  }
  return { alias, fields: Object.keys(fields).length === 0 ? null : fields };
}
