import { admitWaiting } from "../limits/waiting.ts";
import type { Admission, AdmitCall } from "../limits/limits.ts";
import { nanosFromEstimate, type Nanos } from "../pricing/money.ts";
import { limitedEntities } from "../ledger/payers.ts";
import { mostExpensive } from "../pricing/cost.ts";
import { LIFETIME, windowEnd } from "../ledger/budget-windows.ts";
import { askedSearches } from "../tokens/searches.ts";
import { askedTiers, countedAudio } from "../tokens/usage.ts";
import { DatabaseUnavailable } from "../database/pool.ts";
import type { Gateway } from "../gateway.ts";
import { CallError, databaseUnavailable } from "../http/errors.ts";
import { askedImageCost } from "../providers/image-tool.ts";
import type { ModelGroup } from "../routing/catalog.ts";
import type { Call } from "./call.ts";
import { rejectionError, type RejectingBudget } from "./refusals.ts";

export type Admitted = Extract<Admission, { kind: "admitted" }> & {
  /** The cached answer, if any. */
  readonly cached: Buffer | null;
};

/** Above any limit per minute, whatever `max_tokens` a call sets; sums of a thousand such calls stay exact. */
const MAX_TOKENS = 1e12;
/** Totals are loaded at most this often for one call; a window can start between loading and admitting. */
const MAX_LOADS = 3;
/** For the leases of others. */
const WITHOUT_WAITING = AbortSignal.abort();

/**
 * Reads the cache and reserves the limits of all payers; a call that must wait for others' leases waits up to 2 s. Throws the
 * rejection for the caller. `hit`: the whole answer is known already. A hit reserves neither budget nor tokens.
 */
export async function lookupAndAdmit(
  gateway: Pick<Gateway, "cache" | "config" | "ledger" | "limits" | "tokens">,
  call: Call,
  hit = false,
): Promise<Admitted> {
  const { cache } = gateway;
  // A list of embeddings is looked up item by item.
  const byItem = (call.itemKeys?.length ?? 0) > 1;
  const cacheKey = call.cache.read && !byItem ? call.cacheKey : null;
  if (cacheKey !== null && !hit && !cache.isKnown(cacheKey)) {
    return admitUnknown(gateway, call, cacheKey);
  }
  const cached = cacheKey === null ? null : await cache.read(cacheKey);
  const admit = admitCallOf(gateway, call, hit || cached !== null);
  return { ...(await admitted(gateway, admit)), cached };
}

/**
 * In one round trip instead of two, since the answer is most likely not in the cache. If it is there after all, the call holds what
 * a miss does until it is settled, a moment later.
 */
async function admitUnknown(
  gateway: Pick<Gateway, "cache" | "config" | "ledger" | "limits" | "tokens">,
  call: Call,
  cacheKey: string,
): Promise<Admitted> {
  const found = new AbortController();
  const asMiss = admitCallOf(gateway, call, false);
  const admission = admitted(gateway, asMiss, found.signal);
  const admittedAsMiss = admission.catch(() => null);
  const cached = await gateway.cache.read(cacheKey);
  if (cached === null) {
    return { ...(await admission), cached };
  }
  found.abort();
  const asHit = admitCallOf(gateway, call, true);
  return {
    ...((await admittedAsMiss) ?? (await admitted(gateway, asHit))),
    cached,
  };
}

type AdmitPorts = Pick<Gateway, "config" | "ledger" | "limits">;

/**
 * Admits a call, once totals that the limits do not know are loaded. Throws the rejection. `signal` ends the wait for others'
 * leases.
 */
async function admitted(
  gateway: AdmitPorts,
  admit: AdmitCall,
  signal?: AbortSignal,
): Promise<Extract<Admission, { kind: "admitted" }>> {
  for (let loads = 0; loads <= MAX_LOADS; loads++) {
    const admission = await admitWaiting(
      gateway.limits,
      admit,
      signal && { signal },
    );
    switch (admission.kind) {
      case "admitted":
        return admission;
      case "totals_missing":
        await loadTotals(gateway, admission.counters);
        break;
      case "unavailable":
        throw new CallError(
          "limits_unavailable",
          "Limits cannot be checked because Redis is unavailable (`fail_closed`). Try again in a moment.",
          { headers: { "retry-after": "2" } },
        );
      default:
        throw rejectionError(
          admission,
          budgetOf(gateway, admit, admission.entity),
        );
    }
  }
  throw new CallError(
    "limits_unavailable",
    "Limits cannot be checked at the moment. Try again.",
    { headers: { "retry-after": "1" } },
  );
}

/**
 * Raises the lease of a running call to the cost of a further attempt, at its own deployments or at a fallback, and of those that
 * failed and may be charged; false when the payers' budgets do not allow it. `sent` is the call as the deployments of `group` get it.
 */
export async function raiseLease(
  gateway: AdmitPorts & Pick<Gateway, "tokens" | "activeCalls">,
  call: Call,
  sent: Call,
  group: ModelGroup,
): Promise<boolean> {
  const estimate =
    estimateOf(gateway, sent.whole ?? sent, group) + owedBy(gateway, call);
  if (estimate <= estimateOf(gateway, call, call.group)) {
    return true;
  }
  try {
    const raised = { ...admitCallOf(gateway, call, false), estimate };
    await admitted(gateway, raised, WITHOUT_WAITING);
    return true;
  } catch (error) {
    if (error instanceof CallError) {
      return false;
    }
    throw error;
  }
}

/**
 * Raises the lease of a running call to twice its cost, for a second attempt beside the first, and that of its failed attempts;
 * false when the payers' budgets do not have all of it left. `sent` is the call as the deployments of `group` get it.
 */
export async function admitSecond(
  gateway: Pick<Gateway, "config" | "limits" | "tokens" | "activeCalls">,
  call: Call,
  sent: Call,
  group: ModelGroup,
): Promise<boolean> {
  const once = estimateAt(gateway, call, sent, group);
  if (once === 0) {
    return true;
  }
  const admission = await gateway.limits.admit({
    ...admitCallOf(gateway, call, false),
    estimate: once * 2 + owedBy(gateway, call),
    strict: true,
  });
  if (gateway.activeCalls.isSettled(call.id)) {
    // The call ended meanwhile: this reserved its limits once more, where it arrived after their release.
    await gateway.limits.settle({ callId: call.id, tokens: 0, pending: [] });
    return false;
  }
  return admission.kind === "admitted";
}

/**
 * Releases the budgets that a call has reserved, while it waits before anything was sent; its requests, tokens and parallel
 * slots stay counted. Throws the rejection where a budget has been used up meanwhile. `sent` is the call as the deployments of
 * `group` get it.
 */
export async function releaseBudgets(
  gateway: AdmitPorts & Pick<Gateway, "tokens">,
  call: Call,
  sent: Call,
  group: ModelGroup,
): Promise<void> {
  if (estimateAt(gateway, call, sent, group) === 0) {
    return;
  }
  await admitted(gateway, {
    ...admitCallOf(gateway, call, false),
    estimate: 0,
    mayLower: true,
  });
}

/** Reserves them again, when the call can be sent. Throws the rejection. */
export async function reserveBudgets(
  gateway: AdmitPorts & Pick<Gateway, "tokens">,
  call: Call,
  sent: Call,
  group: ModelGroup,
): Promise<void> {
  const estimate = estimateAt(gateway, call, sent, group);
  if (estimate > 0) {
    await admitted(gateway, {
      ...admitCallOf(gateway, call, false),
      estimate,
    });
  }
}

/** What the attempts of a call may cost that failed and may be charged. */
function owedBy(
  { activeCalls }: Pick<Gateway, "activeCalls">,
  call: Call,
): Nanos {
  return nanosFromEstimate(activeCalls.estimatedCost(call.id));
}

/** What a call may cost at the deployments of a fallback, at least what it may cost at its own. */
function estimateAt(
  gateway: Pick<Gateway, "config" | "tokens">,
  call: Call,
  sent: Call,
  group: ModelGroup,
): Nanos {
  return Math.max(
    estimateOf(gateway, call, call.group),
    estimateOf(gateway, sent.whole ?? sent, group),
  );
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
      : Math.min(call.inputTokens + call.outputTokens, MAX_TOKENS),
    strict: general.budgetMode === "strict",
  };
}

function budgetOf(
  gateway: Pick<Gateway, "config">,
  { entities }: AdmitCall,
  entity: string,
): RejectingBudget {
  const payer = entities.find((one) => one.entity === entity);
  return {
    dollars: payer?.maxBudget ?? null,
    resetsAt: windowEnd(
      payer?.window ?? LIFETIME.name,
      gateway.config.general.timezone,
    ),
  };
}

/** The maximum expected cost of a call, at the most expensive deployment of a group. */
function estimateOf(
  gateway: Pick<Gateway, "config" | "tokens">,
  call: Call,
  group: ModelGroup,
): Nanos {
  const { kind, body } = call;
  // Models differ in how much they write, and in whether images are billed by token.
  const outputTokens =
    group === call.group
      ? call.outputTokens
      : kind.estimateOutput(gateway, body, group);
  const audioTokens = countedAudio(call);
  const webSearches = askedSearches(call, "web_search");
  const fileSearches = askedSearches(call, "file_search");
  const imageCost = askedImageCost(body);
  const costs = group.deployments.map((deployment) => {
    const { priceCard } = deployment;
    if (priceCard === null) {
      return 0;
    }
    const margin = gateway.tokens.margin(deployment);
    const own = mostExpensive(priceCard, {
      inputTokens: Math.ceil(call.inputTokens * margin),
      audioInputTokens: Math.ceil(audioTokens * margin),
      outputTokens,
      images: kind.countImages?.(body) ?? 0,
      webSearches,
      fileSearches,
      tiers: askedTiers(call, deployment),
      measure: call.measure,
    });
    // Other models are free where the call's own is.
    return own === 0 ? 0 : own + imageCost;
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
