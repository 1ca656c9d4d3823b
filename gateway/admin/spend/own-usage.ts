import { z } from "zod";
import {
  MASTER_USER,
  type Caller,
  type KeyCaller,
} from "../../access/callers.ts";
import { mayUse } from "../../access/models.ts";
import { query } from "../../database/pool.ts";
import { readTotals, type Total } from "../../database/totals.ts";
import { CallError } from "../../http/errors.ts";
import type { Route } from "../../http/route.ts";
import { limitedEntities, proxyLimitsOf } from "../../ledger/payers.ts";
import { LIFETIME, windowAt, windowEnd } from "../../ledger/windows.ts";
import type { LimitedEntity, LimitState } from "../../limits/limits.ts";
import {
  dollarsFromNanos,
  nanosFromCost,
  type Nanos,
} from "../../pricing/money.ts";
import { adminRoute, type Admin } from "../admin-route.ts";
import { reachableKey } from "../key-owner.ts";
import { name } from "../kinds/values.ts";
import { conditions, type Conditions } from "../paging.ts";
import { DAY, dayRange, daysOf, onDays, type DayRange } from "./days.ts";
import { hashesOf, ofKey } from "./former-keys.ts";
import { ownUsage, type OwnUsage } from "./own-usage-answer.ts";
import { latestRefusals } from "./refusals.ts";

type Of = OwnUsage["budgets"][number]["of"];

const DAY_MS = 86_400_000;
const SHOWN_REFUSALS = 20;

/** GET /me/usage: what the key that asks has spent and has left; its own and nobody else's. */
const usage = adminRoute(
  "GET /me/usage",
  {
    summary:
      "What the key that asks has spent, what is left of each budget and limit, its last refusals, the models it may use.",
    input: z.object(dayRange),
    answer: ownUsage,
  },
  ownUsageOf,
);

/** What a key has spent, what is left of all that limits it, how it was used, its last refusals, the models it may use. */
export async function ownUsageOf(
  admin: Admin,
  range: DayRange,
): Promise<OwnUsage> {
  const { gateway, caller, windowing, now } = admin;
  await gateway.refusals.flush().catch(() => undefined);
  const sources = await sourcesOf(admin);
  const own =
    caller.kind === "key" ? `key:${caller.token}` : `user:${MASTER_USER}`;
  const duration =
    caller.kind === "key"
      ? caller.limits.budgetDuration
      : (caller.user?.limits.budgetDuration ?? null);
  const window = windowAt(duration, now, windowing.timeZone);
  const limited = limitedOf(admin, sources);
  const [[current, total], totals, limits, used, refused] = await Promise.all([
    readTotals(admin.pool, [
      { entity: own, window: window.name },
      { entity: own, window: LIFETIME.name },
    ]),
    readTotals(admin.pool, limited),
    gateway.limits.look(limited),
    usedOf(admin, range),
    refusedOf(admin),
  ]);
  return {
    key: caller.kind === "key" ? shownKey(caller) : null,
    spend: spentOf(admin, current),
    total_spend: total?.spend ?? 0,
    budgets: limited.flatMap((entity, at) =>
      entity.budget === null
        ? []
        : [budgetLeft(admin, entity, entity.budget, totals[at])],
    ),
    limits: limits.flatMap((state) => limitsLeft(admin, state)),
    ...used,
    ...refused,
    models: gateway.catalog.groups
      .filter(({ alias }) => mayUse(caller, alias))
      .map(({ alias, pending }) => ({
        id: alias,
        status: pending === null ? ("ready" as const) : ("pending" as const),
      })),
  };
}

/** Tags of the key and of its team, as calls look them up. */
async function sourcesOf({ gateway, caller }: Admin) {
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

/** Everyone whose budget or limit a call of this key can meet; each alias that has a budget of its own too. */
function limitedOf(
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

/** What the ledger has, and what this instance has not yet brought there. */
function spentOf({ gateway }: Admin, total: Total | undefined): number {
  if (total === undefined) {
    return 0;
  }
  const pending: Nanos = gateway.pending.of(total.entity, total.window);
  return pending === 0 ? total.spend : total.spend + dollarsFromNanos(pending);
}

function budgetLeft(
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

/** `1d@2026-11-21T00:00:00.000Z`: the duration, and when the next window begins. */
function endOf({ windowing }: Admin, window: string) {
  const end = windowEnd(window, windowing.timeZone);
  if (end === Infinity) {
    return null;
  }
  const [duration = ""] = window.split("@");
  return { duration, at: new Date(end).toISOString() };
}

const LIMITS = ["requests", "tokens", "parallel"] as const;

function limitsLeft(
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

/** Whose budget it is, as its holder knows it. */
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

function shownKey(caller: KeyCaller): OwnUsage["key"] {
  const { token, keyName, alias, userId, team, organization, expires } = caller;
  return {
    token,
    key_name: keyName,
    key_alias: alias,
    user_id: userId,
    team_id: team?.id ?? null,
    team_alias: team?.alias ?? null,
    organization_id: organization?.id ?? null,
    expires: expires === null ? null : new Date(expires).toISOString(),
  };
}

/** Rows of the daily sums that are the caller's own. */
async function ownDays(admin: Admin, range: DayRange): Promise<Conditions> {
  const { caller } = admin;
  const filter = onDays(admin, range);
  if (caller.kind === "key") {
    await ofKey(admin.pool, filter, "api_key", caller.token);
  } else {
    filter.and("api_key = ''");
    filter.and("user_id = ?", MASTER_USER);
  }
  return filter;
}

const USED = `sum(spend) AS spend, sum(requests)::bigint AS api_requests, sum(failed)::bigint AS failed_requests,
  sum(prompt_tokens + completion_tokens)::bigint AS total_tokens, sum(cache_hits)::bigint AS cache_hits`;

async function usedOf(
  admin: Admin,
  range: DayRange,
): Promise<Pick<OwnUsage, "start_date" | "end_date" | "by_day" | "by_model">> {
  const { start, end } = daysOf(admin, range);
  const filter = await ownDays(admin, range);
  const [byDay, byModel] = await Promise.all([
    query<OwnUsage["by_day"][number]>(
      admin.pool,
      `SELECT ${DAY} AS date, ${USED} FROM daily_spend ${filter.where()} GROUP BY day ORDER BY day`,
      filter.values,
    ),
    query<OwnUsage["by_model"][number]>(
      admin.pool,
      `SELECT model_group AS model, ${USED} FROM daily_spend ${filter.where()} GROUP BY 1 ORDER BY 2 DESC, 1`,
      filter.values,
    ),
  ]);
  return {
    start_date: start,
    end_date: end,
    by_day: [...byDay],
    by_model: [...byModel],
  };
}

async function refusedOf(
  admin: Admin,
): Promise<Pick<OwnUsage, "refusals" | "refused_last_day">> {
  const { caller, now } = admin;
  const hashes =
    caller.kind === "key" ? await hashesOf(admin.pool, caller.token) : [""];
  const filter = conditions();
  filter.and("r.api_key = ANY(?)", hashes);
  const since = new Date(now - DAY_MS).toISOString();
  const [[counted], latest] = await Promise.all([
    query<{ count: number }>(
      admin.pool,
      "SELECT coalesce(sum(count), 0)::bigint AS count FROM refusal_hours WHERE api_key = ANY($1) AND last_at >= $2",
      [hashes, since],
    ),
    latestRefusals(admin, filter, new Date(0).toISOString(), 1, SHOWN_REFUSALS),
  ]);
  return {
    refused_last_day: counted?.count ?? 0,
    refusals: latest as OwnUsage["refusals"],
  };
}

/** GET /key/usage: the same of any key within reach, for those who look after it. */
const usageOfKey = adminRoute(
  "GET /key/usage",
  {
    summary: "The same of a key within reach, for those who look after it.",
    input: z.object({ ...dayRange, key: name }),
    answer: ownUsage,
  },
  async (admin, { key, ...range }) => {
    const { token } = await reachableKey(admin, admin.pool, key);
    const caller = await admin.gateway.callers.keys.find(String(token));
    if (caller === null) {
      throw new CallError(
        "unknown_object",
        "This key was deleted just now. List those there are with GET /key/list.",
        { param: "key" },
      );
    }
    return ownUsageOf({ ...admin, caller }, range);
  },
);

export const OWN_USAGE: readonly Route[] = [usage, usageOfKey];
