import type { Caller } from "../../access/callers.ts";
import type { Total } from "../../database/totals.ts";
import { limitedEntities, proxyLimitsOf } from "../../ledger/payers.ts";
import { windowEnd } from "../../ledger/budget-windows.ts";
import type { LimitedEntity, LimitState } from "../../limits/limits.ts";
import {
  dollarsFromNanos,
  nanosFromCost,
  type Nanos,
} from "../../pricing/money.ts";
import type { Admin } from "../admin-route.ts";
import type { OwnUsage } from "./own-usage-answer.ts";

type Of = OwnUsage["budgets"][number]["of"];

/** The payers of a call of this key; tags are those of the key and of its team. */
export async function sourcesOf({ gateway, caller }: Admin) {
  const tags =
    caller.kind === "key"
      ? [...new Set([...caller.tags, ...(caller.team?.tags ?? [])])]
      : [];
  const found = await Promise.all(
    tags.map((tag) => gateway.callers.tags.find(tag)),
  );
  return {
    caller,
    endUser: null,
    tags: found.filter((tag) => tag !== null),
    proxy: proxyLimitsOf(gateway.config.general),
  };
}

/** Everything whose budget or limit applies to a call of this key, aliases with their own budget included. */
export function limitedOf(
  { caller, windowing, now }: Admin,
  sources: Awaited<ReturnType<typeof sourcesOf>>,
): readonly LimitedEntity[] {
  const aliases = caller.kind === "key" ? [...caller.modelLimits.keys()] : [];
  const byName = new Map<string, LimitedEntity>();
  for (const alias of ["", ...aliases]) {
    for (const entity of limitedEntities(
      { ...sources, alias },
      now,
      windowing.timeZone,
    )) {
      byName.set(entity.entity, entity);
    }
  }
  return [...byName.values()];
}

/** The spend in the ledger and the pending spend of this instance. */
export function spentOf({ gateway }: Admin, total: Total | undefined): number {
  if (total === undefined) {
    return 0;
  }
  const pending: Nanos = gateway.pending.of(total.entity, total.window);
  return pending === 0 ? total.spend : total.spend + dollarsFromNanos(pending);
}

export function budgetLeft(
  admin: Admin,
  { entity, window }: LimitedEntity,
  budget: Nanos,
  total: Total | undefined,
): OwnUsage["budgets"][number] {
  const spend = spentOf(admin, total);
  const end = endOf(admin, window);
  return {
    ...nameOf(admin.caller, entity),
    spend,
    max_budget: dollarsFromNanos(budget),
    remaining: dollarsFromNanos(Math.max(0, budget - nanosFromCost(spend))),
    budget_duration: end?.duration ?? null,
    budget_reset_at: end?.at ?? null,
  };
}

/** Of a window such as `1d@2026-11-21T00:00:00.000Z`: the duration and the start of the next one. */
function endOf({ windowing }: Admin, window: string) {
  const end = windowEnd(window, windowing.timeZone);
  if (end === Infinity) {
    return null;
  }
  const [duration = ""] = window.split("@");
  return { duration, at: new Date(end).toISOString() };
}

const LIMITS = ["requests", "tokens", "parallel"] as const;

export function limitsLeft(
  { caller, now }: Admin,
  state: LimitState,
): OwnUsage["limits"] {
  return LIMITS.flatMap((limit) => {
    const left = state[limit];
    if (left === null) {
      return [];
    }
    const resetInMs = "resetInMs" in left ? left.resetInMs : 0;
    return [
      {
        ...nameOf(caller, state.entity),
        limit,
        allowed: left.limit,
        remaining: left.remaining,
        reset_at:
          resetInMs === 0 ? null : new Date(now + resetInMs).toISOString(),
      },
    ];
  });
}

/** The name of a payer as the holder of the key knows it. */
function nameOf(
  caller: Caller,
  entity: string,
): { readonly of: Of; readonly name: string } {
  const colon = entity.indexOf(":");
  const of = entity.slice(0, colon) as Of;
  const id = entity.slice(colon + 1);
  const key = caller.kind === "key" ? caller : null;
  switch (of) {
    case "key":
      return { of, name: key?.alias ?? key?.keyName ?? id };
    case "team":
      return { of, name: key?.team?.alias ?? id };
    case "key_model":
    case "member":
      return { of, name: id.slice(id.indexOf("/") + 1) };
    default:
      return { of, name: id };
  }
}
