import type { RateState } from "../limits/limits.ts";
import { dollarsFromNanos } from "../pricing/money.ts";
import type { Deployment, GatewayConfig } from "../config/types.ts";
import type { Gateway } from "../gateway.ts";
import type { Admitted } from "./admit.ts";
import type { Call } from "./call.ts";
import { addAllowances, addTwins } from "./litellm-headers.ts";
import type { Upstream } from "./provider.ts";

export interface Answered {
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
  const durationMs = Date.now() - call.startedAt;
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
  if (cost !== null) {
    headers["x-hearth-cost"] = String(cost);
  }
  if (call.cacheKey !== null) {
    headers["x-hearth-cache-key"] = headerText(call.cacheKey);
  }
  if (upstream !== null) {
    const { id, provider } = namesOf(upstream.deployment);
    headers["x-hearth-model-id"] = id;
    headers["x-hearth-provider"] = provider;
    headers["x-hearth-attempted-retries"] = String(
      upstream.attempts.length - upstream.fallbacks,
    );
    headers["x-hearth-attempted-fallbacks"] = String(upstream.fallbacks);
  }
  addRates(headers, "requests", admitted.rates);
  addRates(headers, "tokens", admitted.rates);
  if (config.general.litellmHeaders) {
    addLitellmNames(headers, config, call, admitted, upstream);
  }
  return headers;
}

interface DeploymentNames {
  readonly id: string;
  readonly provider: string;
}

const names = new WeakMap<Deployment, DeploymentNames>();

/** As header values; computed once for each deployment. */
function namesOf(deployment: Deployment): DeploymentNames {
  const known = names.get(deployment);
  if (known !== undefined) {
    return known;
  }
  const read = {
    id: headerText(deployment.id),
    provider: headerText(deployment.providerName),
  };
  names.set(deployment, read);
  return read;
}

/** Text that needs no encoding in a header: printable ASCII without `%`. */
const PLAIN = /^[ -$&-~]*$/;

/**
 * Any text as a header value: percent-encoded as UTF-8 if it is not plain printable ASCII. `decodeURIComponent` restores the
 * text in both cases.
 */
export function headerText(text: string): string {
  return PLAIN.test(text) ? text : encodeURI(text.toWellFormed());
}

/** `key-spend` is sent for keys with a budget, whose spend is known: dollars before this call. */
function addLitellmNames(
  headers: Record<string, string>,
  config: GatewayConfig,
  call: Call,
  { spends }: Admitted,
  upstream: Upstream | null,
): void {
  addTwins(headers);
  addAllowances(headers, config, call, upstream?.deployment);
  const { caller } = call;
  if (caller.kind !== "key") {
    return;
  }
  if (caller.limits.maxBudget !== null) {
    headers["x-litellm-key-max-budget"] = String(caller.limits.maxBudget);
  }
  const own = spends.find(({ entity }) => entity === `key:${caller.token}`);
  if (own !== undefined) {
    headers["x-litellm-key-spend"] = String(dollarsFromNanos(own.spend));
  }
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
