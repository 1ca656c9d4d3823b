import type { RateState } from "../accounting/limits.ts";
import type { Admitted } from "./admit.ts";
import type { Call } from "./call.ts";
import type { Upstream } from "./provider.ts";

export interface Answered {
  readonly upstream: Upstream | null;
  /** Dollars; null while a stream is still being produced. */
  readonly cost: number | null;
  readonly cache: "hit" | "miss" | "bypass";
}

/** The headers of an answer: what it was, what it cost, what is left of the minute. */
export function answerHeaders(
  call: Call,
  admitted: Admitted,
  answered: Answered,
): Record<string, string> {
  const { upstream, cost, cache } = answered;
  const headers: Record<string, string> = {
    "x-hearth-call-id": call.id,
    "x-hearth-model-group": call.group.alias,
    "x-hearth-cache": cache,
    "x-hearth-duration-ms": String(Date.now() - call.startedAt),
  };
  if (cost !== null) headers["x-hearth-cost"] = String(cost);
  if (call.cacheKey !== null) headers["x-hearth-cache-key"] = call.cacheKey;
  if (upstream !== null) {
    headers["x-hearth-model-id"] = upstream.deployment.id;
    headers["x-hearth-provider"] = upstream.deployment.providerName;
    headers["x-hearth-attempted-retries"] = String(
      upstream.attempts.length - upstream.fallbacks,
    );
    headers["x-hearth-attempted-fallbacks"] = String(upstream.fallbacks);
  }
  addRates(headers, "requests", admitted.rates);
  addRates(headers, "tokens", admitted.rates);
  return headers;
}

/** The tightest of the payers' limits is the one that a client can act on. */
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
    )
      tightest = state;
  }
  if (tightest === null) return;
  headers[`x-ratelimit-limit-${kind}`] = String(tightest.limit);
  headers[`x-ratelimit-remaining-${kind}`] = String(tightest.remaining);
  headers[`x-ratelimit-reset-${kind}`] = String(
    Math.ceil(tightest.resetInMs / 1_000),
  );
}
