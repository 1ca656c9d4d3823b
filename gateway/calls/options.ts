import type { IncomingHttpHeaders } from "node:http";
import type { Caller } from "../access/callers.ts";
import { faultOfName } from "../ledger/names.ts";
import { CallError } from "../http/errors.ts";

/** A caller's options for the gateway; they do not reach a provider. */
export interface CallOptions {
  /** For all attempts together; null: the router's. */
  readonly timeoutMs: number | null;
  /** null: the router's or the deployment's. */
  readonly numRetries: number | null;
  /** Aliases to try instead of the configured ones. */
  readonly fallbacks: readonly string[] | null;
  /** Test hooks, for keys that may use them. */
  readonly mock: {
    readonly response: string | null;
    readonly failFirst: boolean;
    readonly timeout: boolean;
  };
}

const MAX_RETRIES = 10;
const MAX_FALLBACKS = 10;
const NO_MOCK = { response: null, failFirst: false, timeout: false } as const;

/** Reads `timeout`, `num_retries`, `fallbacks` and the `mock_…` hooks of a body, and the equivalent headers. */
export function readCallOptions(
  body: Readonly<Record<string, unknown>>,
  headers: IncomingHttpHeaders,
  caller: Caller,
): CallOptions {
  const timeout = numberOf(
    "timeout",
    body["timeout"] ??
      headers["x-hearth-timeout"] ??
      headers["x-litellm-timeout"],
    0,
    86_400,
  );
  return {
    timeoutMs: timeout === null ? null : timeout * 1_000,
    numRetries: numberOf(
      "num_retries",
      body["num_retries"] ??
        headers["x-hearth-num-retries"] ??
        headers["x-litellm-num-retries"],
      0,
      MAX_RETRIES,
    ),
    fallbacks: fallbacksOf(body["fallbacks"]),
    mock: mayMock(caller)
      ? {
          response:
            typeof body["mock_response"] === "string"
              ? body["mock_response"]
              : null,
          failFirst: body["mock_testing_fallbacks"] === true,
          timeout: body["mock_timeout"] === true,
        }
      : NO_MOCK,
  };
}

function mayMock(caller: Caller): boolean {
  return (
    caller.kind === "master" ||
    caller.metadata["allow_client_mock_response"] === true
  );
}

function numberOf(
  field: string,
  value: unknown,
  least: number,
  most: number,
): number | null {
  if (value === undefined || value === null) {
    return null;
  }
  // Number() would throw for some other values, or convert them to a number that was not sent.
  const number =
    typeof value === "number" || (typeof value === "string" && value !== "")
      ? Number(value)
      : NaN;
  if (Number.isFinite(number) && number >= least && number <= most) {
    return number;
  }
  throw new CallError(
    "invalid_request",
    `\`${field}\` must be a number from ${least} to ${most}.`,
    { param: field },
  );
}

function fallbacksOf(value: unknown): readonly string[] | null {
  if (value === undefined || value === null) {
    return null;
  }
  const names = Array.isArray(value)
    ? value.map((entry: unknown) =>
        typeof entry === "object" && entry !== null
          ? (entry as { model?: unknown }).model
          : entry,
      )
    : [];
  if (
    Array.isArray(value) &&
    names.length <= MAX_FALLBACKS &&
    names.every((name) => typeof name === "string") &&
    names.every((name) => faultOfName(name) === null)
  ) {
    return names;
  }
  throw new CallError(
    "invalid_request",
    `\`fallbacks\` must be a list of at most ${MAX_FALLBACKS} model names.`,
    {
      param: "fallbacks",
    },
  );
}
