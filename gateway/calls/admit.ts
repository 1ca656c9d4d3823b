import { admitWaiting } from "../limits/waiting.ts";
import type { Admission, AdmitCall } from "../limits/limits.ts";
import { nanosFromEstimate, type Nanos } from "../pricing/money.ts";
import { limitedEntities } from "../ledger/payers.ts";
import { dearest } from "../pricing/prices.ts";
import { LIFETIME, windowEnd } from "../ledger/windows.ts";
import { askedTiers } from "../tokens/usage.ts";
import { DatabaseUnavailable } from "../database/pool.ts";
import type { Gateway } from "../gateway.ts";
import { CallError, databaseUnavailable } from "../http/errors.ts";
import type { ModelGroup } from "../routing/catalog.ts";
import type { Call } from "./call.ts";
import { refusalError } from "./refusals.ts";

export type Admitted = Extract<Admission, { kind: "admitted" }> & {
  /** The answer, where the cache has it. */
  readonly cached: Buffer | null;
};

/** Above any limit per minute; sums of a thousand such calls stay exact, whatever `max_tokens` they set. */
const MOST_TOKENS = 1e12;
/** Totals are asked for at most this often for one call; a window can begin between asking and admitting. */
const MOST_LOADS = 3;

/**
 * Reads the cache, then takes the limits of everyone who pays; a call that must wait for others' leases waits up to 2 s. Throws
 * the refusal as the caller shall read it. `hit`: all of the answer is known already. A hit takes no lease and no tokens.
 */
export async function lookupAndAdmit(
  gateway: Pick<Gateway, "cache" | "config" | "ledger" | "limits" | "tokens">,
  call: Call,
  hit = false,
): Promise<Admitted> {
  // A list of embeddings is looked up by its items.
  const byItem = (call.itemKeys?.length ?? 0) > 1;
  const cacheKey = call.cache.read && !byItem ? call.cacheKey : null;
  const cached = cacheKey === null ? null : await gateway.cache.read(cacheKey);
  const admit = admitCallOf(gateway, call, hit || cached !== null);
  for (let loads = 0; loads <= MOST_LOADS; loads++) {
    const admission = await admitWaiting(gateway.limits, admit);
    switch (admission.kind) {
      case "admitted":
        return { ...admission, cached };
      case "totals_missing":
        await loadTotals(gateway, admission.counters);
        break;
      case "unavailable":
        throw new CallError(
          "limits_unavailable",
          "Limits cannot be checked now because Redis is away, and this gateway is set to refuse then. Try again in a moment.",
          { headers: { "retry-after": "2" } },
        );
      default:
        throw refusalError(
          admission,
          renewalOf(gateway, admit, admission.entity),
        );
    }
  }
  throw new CallError(
    "limits_unavailable",
    "Limits cannot be checked now. Try again in a moment.",
    { headers: { "retry-after": "1" } },
  );
}

/**
 * Raises the lease of a call in flight to what a fallback may cost; false when that is more than the payers have left.
 */
export async function raiseLease(
  gateway: Pick<Gateway, "config" | "limits" | "tokens">,
  call: Call,
  group: ModelGroup,
): Promise<boolean> {
  const estimate = estimateOf(gateway, call.whole ?? call, group);
  if (estimate <= estimateOf(gateway, call, call.group)) {
    return true;
  }
  const admission = await gateway.limits.admit({
    ...admitCallOf(gateway, call, false),
    estimate,
  });
  return admission.kind === "admitted";
}

function admitCallOf(
  gateway: Pick<Gateway, "config" | "tokens">,
  call: Call,
  hit: boolean,
): AdmitCall {
  const { general } = gateway.config;
  return {
    callId: call.id,
    entities: limitedEntities(
      call.limitSources,
      call.startedAt,
      general.timezone,
    ),
    estimate: hit ? 0 : estimateOf(gateway, call, call.group),
    tokens: hit
      ? 0
      : Math.min(call.inputTokens + call.outputTokens, MOST_TOKENS),
    strict: general.budgetMode === "strict",
  };
}

/** When the budget of one of a call's payers begins anew, ms since the epoch; Infinity: never. */
function renewalOf(
  gateway: Pick<Gateway, "config">,
  { entities }: AdmitCall,
  entity: string,
): number {
  const payer = entities.find((one) => one.entity === entity);
  return windowEnd(
    payer?.window ?? LIFETIME.name,
    gateway.config.general.timezone,
  );
}

/** The worst case that a call is expected to cost, at the dearest deployment of a group. */
function estimateOf(
  gateway: Pick<Gateway, "tokens">,
  call: Call,
  group: ModelGroup,
): Nanos {
  const costs = group.deployments.map((deployment) => {
    const { priceCard } = deployment;
    if (priceCard === null) {
      return 0;
    }
    const margin = gateway.tokens.margin(deployment);
    return dearest(
      priceCard,
      Math.ceil(call.inputTokens * margin),
      call.outputTokens,
      call.kind.countImages?.(call.body) ?? 0,
      askedTiers(call, deployment),
    );
  });
  return nanosFromEstimate(Math.max(0, ...costs));
}

async function loadTotals(
  gateway: Pick<Gateway, "ledger">,
  counters: readonly { readonly entity: string; readonly window: string }[],
): Promise<void> {
  try {
    await gateway.ledger.totals.load(counters);
  } catch (error) {
    throw error instanceof DatabaseUnavailable ? databaseUnavailable() : error;
  }
}
