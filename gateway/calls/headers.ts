import type { FastifyRequest } from "fastify";
import type { Caller } from "../access/callers.ts";
import { windowAt } from "../ledger/budget-windows.ts";
import type { RateState } from "../limits/limits.ts";
import { dollarsFromNanos, type Nanos } from "../pricing/money.ts";
import type { Gateway } from "../gateway.ts";
import type { Admitted } from "./admit.ts";
import { timeIn } from "./call-clock.ts";
import type { Call } from "./call.ts";
import { deploymentHeaders, headerText } from "./deployment-headers.ts";
import { addAllowances, addTwins } from "./litellm-headers.ts";
import type { Upstream } from "./provider.ts";

interface Answered {
  readonly upstream: Upstream | null;
  /** Dollars; null while a stream is still being produced. */
  readonly cost: number | null;
  readonly cache: "hit" | "miss" | "bypass";
}

/** The headers of an answer: identity, cost and remaining rate limits. */
export function answerHeaders(
  { config }: Pick<Gateway, "config">,
  call: Call,
  admitted: Admitted,
  answered: Answered,
): Record<string, string> {
  const { upstream, cost, cache } = answered;
  const durationMs = timeIn(call) - call.startedAt;
  const overheadMs = Math.max(
    0,
    durationMs - Math.round(upstream?.waitedMs ?? 0),
  );
  const headers: Record<string, string> = {
    "x-hearth-call-id": call.id,
    "x-hearth-model-group": headerText(call.group.alias),
    "x-hearth-cache": cache,
    "x-hearth-duration-ms": String(durationMs),
    "x-hearth-overhead-ms": String(overheadMs),
  };
  addGuardrails(headers, call, "answer");
  if (cost !== null) {
    headers["x-hearth-cost"] = String(cost);
  }
  if (call.cacheKey !== null) {
    headers["x-hearth-cache-key"] = headerText(call.cacheKey);
  }
  if (upstream !== null) {
    Object.assign(headers, deploymentHeaders(upstream.deployment));
    headers["x-hearth-attempted-retries"] = String(upstream.retries);
    headers["x-hearth-attempted-fallbacks"] = String(upstream.fallbacks);
    if (upstream.queuedMs !== null) {
      headers["x-hearth-queue-ms"] = String(upstream.queuedMs);
    }
  }
  addRates(headers, "requests", admitted.rates);
  addRates(headers, "tokens", admitted.rates);
  if (config.general.litellmHeaders) {
    addTwins(headers);
    addAllowances(headers, config, call, upstream?.deployment);
    addKeyLimits(headers, call.caller, spendOfKey(call.caller, admitted));
  }
  return headers;
}

/** The headers of an error: of those of an answer what is known by then. `own` are the error's, which are added. */
export function errorHeaders(
  gateway: Pick<Gateway, "config" | "limits" | "pending">,
  { id, caller, call, admitted }: FastifyRequest,
  own: Readonly<Record<string, string>>,
): Record<string, string> {
  const { config } = gateway;
  const headers: Record<string, string> = { "x-hearth-call-id": id };
  if (call !== null) {
    headers["x-hearth-model-group"] = headerText(call.group.alias);
    headers["x-hearth-attempted-retries"] = "0";
    headers["x-hearth-attempted-fallbacks"] = "0";
    headers["x-hearth-duration-ms"] = String(timeIn(call) - call.startedAt);
    addGuardrails(headers, call, "error");
  }
  addRates(headers, "requests", admitted?.rates ?? []);
  addRates(headers, "tokens", admitted?.rates ?? []);
  Object.assign(headers, own);
  if (config.general.litellmHeaders) {
    addTwins(headers);
    if (call !== null && own["x-litellm-timeout"] === undefined) {
      addAllowances(headers, config, call, undefined);
    }
    addKeyLimits(headers, caller, knownSpend(gateway, caller, admitted));
  }
  return headers;
}

function addGuardrails(
  headers: Record<string, string>,
  { guards }: Call,
  of: "answer" | "error",
): void {
  const applied = guards?.applied(of) ?? "";
  if (applied !== "") {
    headers["x-hearth-applied-guardrails"] = headerText(applied);
  }
}

/** Of a key with a budget, before this call; of a call that was not admitted as this instance knows it. */
function knownSpend(
  { config, limits, pending }: Pick<Gateway, "config" | "limits" | "pending">,
  caller: Caller | null,
  admitted: Admitted | null,
): Nanos | null {
  if (caller?.kind !== "key" || caller.limits.maxBudget === null) {
    return null;
  }
  if (admitted !== null) {
    return spendOfKey(caller, admitted);
  }
  const entity = `key:${caller.token}`;
  const { timezone } = config.general;
  const { name } = windowAt(caller.limits.budgetDuration, Date.now(), timezone);
  const known = limits.lastKnown(entity, name);
  return known === null ? null : known.total + pending.of(entity, name);
}

/** `spend` is known for keys with a budget: dollars before this call. */
function addKeyLimits(
  headers: Record<string, string>,
  caller: Caller | null,
  spend: Nanos | null,
): void {
  if (caller?.kind !== "key") {
    return;
  }
  const { maxBudget, tokensPerMinute, requestsPerMinute } = caller.limits;
  for (const [name, limit] of [
    ["max-budget", maxBudget],
    ["tpm-limit", tokensPerMinute],
    ["rpm-limit", requestsPerMinute],
  ] as const) {
    if (limit !== null) {
      headers[`x-litellm-key-${name}`] = String(limit);
    }
  }
  if (spend !== null) {
    headers["x-litellm-key-spend"] = String(dollarsFromNanos(spend));
  }
}

function spendOfKey(caller: Caller, { spends }: Admitted): Nanos | null {
  if (caller.kind !== "key") {
    return null;
  }
  const own = spends.find(({ entity }) => entity === `key:${caller.token}`);
  return own?.spend ?? null;
}

/** Of the payers' limits the tightest is sent: the one that the client will reach first. */
function addRates(
  headers: Record<string, string>,
  kind: "requests" | "tokens",
  rates: readonly RateState[],
): void {
  let tightest: RateState["requests"] = null;
  for (const rate of rates) {
    const state = rate[kind];
    if (
      state !== null &&
      (tightest === null || state.remaining < tightest.remaining)
    ) {
      tightest = state;
    }
  }
  if (tightest === null) {
    return;
  }
  headers[`x-ratelimit-limit-${kind}`] = String(tightest.limit);
  headers[`x-ratelimit-remaining-${kind}`] = String(tightest.remaining);
  headers[`x-ratelimit-reset-${kind}`] = String(
    Math.ceil(tightest.resetInMs / 1_000),
  );
}
