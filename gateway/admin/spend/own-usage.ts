import { z } from "zod";
import { DAY_MS } from "../../../core/duration.ts";
import { MASTER_USER, type KeyCaller } from "../../access/callers.ts";
import { usableModels } from "../../access/models.ts";
import { query } from "../../database/pool.ts";
import { readTotals } from "../../database/totals.ts";
import { CallError } from "../../http/errors.ts";
import type { Route } from "../../http/route.ts";
import { LIFETIME, windowAt } from "../../ledger/budget-windows.ts";
import { statusOf } from "../../routing/catalog.ts";
import { adminRoute, type Admin } from "../admin-route.ts";
import { reachableKey } from "../key-owner.ts";
import { name } from "../kinds/values.ts";
import { conditions, type Conditions } from "../paging.ts";
import { DAY, dayRange, daysOf, onDays, type DayRange } from "./days.ts";
import { hashesOf, ofKey } from "./former-keys.ts";
import {
  budgetLeft,
  limitedOf,
  limitsLeft,
  sourcesOf,
  spentOf,
} from "./own-limits.ts";
import { ownUsage, type OwnUsage } from "./own-usage-answer.ts";
import { latestRefusals } from "./refusals.ts";

const SHOWN_REFUSALS = 20;

/** GET /me/usage */
const usage = adminRoute(
  "GET /me/usage",
  {
    summary:
      "Get the spend of the caller's key, what is left of each budget and limit, its latest rejected calls and the models it may use.",
    input: z.object(dayRange),
    answer: ownUsage,
  },
  ownUsageOf,
);

/** The spend of the caller's key, what is left of its budgets and limits, its usage, its latest rejected calls and its models. */
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
    models: usableModels(gateway.catalog, caller).map((group) => ({
      id: group.alias,
      status: statusOf(group),
    })),
  };
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

/** The caller's rows of the daily sums. */
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
  sum(prompt_tokens + completion_tokens)::bigint AS total_tokens, sum(cache_hits)::bigint AS cache_hits, sum(saved) AS saved`;

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
    latestRefusals(admin, filter, new Date(0).toISOString(), {
      page: 1,
      size: SHOWN_REFUSALS,
    }),
  ]);
  return {
    refused_last_day: counted?.count ?? 0,
    refusals: latest as OwnUsage["refusals"],
  };
}

/** GET /key/usage */
const usageOfKey = adminRoute(
  "GET /key/usage",
  {
    summary: "Get what GET /me/usage shows, for a key within reach.",
    input: z.object({ ...dayRange, key: name }),
    answer: ownUsage,
  },
  async (admin, { key, ...range }) => {
    const { token } = await reachableKey(admin, admin.pool, key);
    const caller = await admin.gateway.callers.keys.find(String(token));
    if (caller === null) {
      throw new CallError(
        "unknown_object",
        "This key has just been deleted. GET /key/list lists the keys.",
        { param: "key" },
      );
    }
    return ownUsageOf({ ...admin, caller }, range);
  },
);

export const OWN_USAGE: readonly Route[] = [usage, usageOfKey];
