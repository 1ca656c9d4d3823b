import { z } from "zod";
import type { RouteName } from "../../access/policy.ts";
import { query } from "../../database/pool.ts";
import type { Route } from "../../http/route.ts";
import { adminRoute, type Admin } from "../admin-route.ts";
import { tokenOf } from "../key-tokens.ts";
import { ORGANIZATION } from "../kinds/organization.ts";
import { name, queryNames, queryNumber } from "../kinds/values.ts";
import type { Conditions } from "../paging.ts";
import { findOne } from "../payers.ts";
import { reachableTeam } from "../team-access.ts";
import { denyUser, requireUser } from "../user-access.ts";
import { activity } from "./activity-answer.ts";
import { dailyRowsWith, type PayerColumn } from "./daily-rows.ts";
import {
  DAY,
  dayRange,
  METRIC_NAMES,
  METRICS,
  onDays,
  type DayRange,
  type Metrics,
} from "./days.ts";
import { keepReachableSpend, ofKey } from "./former-keys.ts";
import { MAX_NAMES, mostExpensiveOfEachDay } from "./most-expensive.ts";

const BREAKDOWN = ["models", "providers", "api_keys"] as const;

type Breakdown = (typeof BREAKDOWN)[number];

interface ActivityRow extends Metrics {
  readonly date: string;
  /** The breakdown of the row; null: the whole day. */
  readonly part: Breakdown | null;
  readonly name: string | null;
  readonly key_alias: string | null;
}

interface Subject {
  readonly route: RouteName;
  readonly summary: string;
  /** The column of `daily_spend` that names the payer; null: a tag, whose days are in their own table. */
  readonly column: PayerColumn | null;
  readonly params: readonly string[];
  /** Throws 403 for an id out of reach. */
  readonly requireReach: (admin: Admin, id: string) => Promise<unknown>;
  /** The ids whose activity a caller sees by default, unless it sees all. */
  readonly own: (admin: Admin) => readonly string[];
}

const SUBJECTS: readonly Subject[] = [
  {
    route: "GET /user/daily/activity",
    summary: "Get the activity of users by day.",
    column: "user_id",
    params: ["user_id", "user_ids"],
    requireReach: async (admin, user_id) =>
      admin.actor.userId === user_id ||
      denyUser(admin, await requireUser(admin.pool, { user_id })),
    own: ({ actor }) => (actor.userId === null ? [] : [actor.userId]),
  },
  {
    route: "GET /team/daily/activity",
    summary: "Get the activity of teams by day.",
    column: "team_id",
    params: ["team_id", "team_ids"],
    requireReach: (admin, team) => reachableTeam(admin, admin.pool, team),
    own: ({ teams }) => teams,
  },
  {
    route: "GET /organization/daily/activity",
    summary: "Get the activity of organizations by day.",
    column: "organization_id",
    params: ["organization_id", "organization_ids"],
    requireReach: async (admin, organizationId) => {
      await findOne(admin.pool, ORGANIZATION, {
        organization_id: organizationId,
      });
      // Members may see the organization, but its spend is for its admins only.
      admin.requireReach({
        what: `organization ${organizationId}`,
        organizationId,
        teamId: null,
      });
    },
    own: ({ actor }) => [...actor.organizations],
  },
  {
    route: "GET /tag/daily/activity",
    summary: "Get the activity of tags by day.",
    column: null,
    params: ["tag", "tags"],
    requireReach: async () => undefined,
    own: () => [],
  },
];

function activityRoute(subject: Subject): Route {
  const ids = Object.fromEntries(
    subject.params.map((param) => [param, queryNames.optional()]),
  );
  return adminRoute(
    subject.route,
    {
      summary: subject.summary,
      input: z.object({
        ...dayRange,
        ...ids,
        api_key: name.optional(),
        model: name.optional(),
        page: queryNumber(1, 10_000, 1),
        page_size: queryNumber(1, 1_000, 100),
      }),
      answer: activity,
    },
    async (admin, input) => {
      const filter = onDays(admin, input);
      // A team's admin sees only that team's part of a user in several teams.
      if (subject.column === "user_id") {
        await keepReachableSpend(admin, filter);
      }
      const given: Readonly<Record<string, unknown>> = input;
      const named = subject.params.flatMap((param) =>
        ((given[param] ?? []) as readonly string[]).slice(),
      );
      for (const id of named) {
        await subject.requireReach(admin, id);
      }
      const chosenKey =
        input.api_key === undefined ? null : tokenOf(input.api_key);
      const ownKey = restrictTo(admin, subject, filter, named);
      for (const token of [ownKey, chosenKey]) {
        if (token !== null) {
          await ofKey(admin.pool, filter, "api_key", token);
        }
      }
      if (input.model !== undefined) {
        filter.and("(model = ? OR model_group = ?)", input.model);
      }
      const rows = await readActivity(admin, subject, input, filter, {
        byKey: ownKey !== null || chosenKey !== null,
      });
      return paged(rows, input.page, input.page_size);
    },
  );
}

/** Keeps the rows of the named ids, else of the visible ones; returns the caller's key where only its rows are left. */
function restrictTo(
  admin: Admin,
  { column, own }: Subject,
  filter: Conditions,
  named: readonly string[],
): string | null {
  const id = column ?? "tag";
  const ids = named.length > 0 || admin.reachesAll ? named : own(admin);
  if (ids.length > 0) {
    filter.and(`${id} = ANY(?)`, ids);
  } else if (admin.reachesAll) {
    filter.and(`${id} <> ''`);
  } else if (admin.actor.token === null) {
    filter.and("false");
  } else {
    return admin.actor.token;
  }
  return null;
}

async function readActivity(
  admin: Admin,
  { column }: Subject,
  range: DayRange,
  filter: Conditions,
  { byKey }: { readonly byKey: boolean },
): Promise<readonly ActivityRow[]> {
  const where = filter.where();
  const table = column === null ? "daily_tag_spend" : "daily_spend";
  // There are many keys and few models: the sums of models are read from rows without keys where possible.
  const modelRows =
    column === null
      ? table
      : dailyRowsWith(byKey ? [column, "api_key"] : [column]);
  const keys = mostExpensiveOfEachDay(admin, range, {
    from: table,
    filter,
    column: "api_key",
    limit: MAX_NAMES,
    sums: METRICS,
  });
  return query<ActivityRow>(
    admin.pool,
    `WITH by_model AS (SELECT day, model, provider, ${METRICS} FROM ${modelRows} ${where} GROUP BY day, model, provider),
      sums AS (
        SELECT day, CASE WHEN grouping(model) = 0 THEN 'models' WHEN grouping(provider) = 0 THEN 'providers' END AS part,
            coalesce(model, provider) AS name, ${METRIC_NAMES.map((metric) => `sum(${metric}) AS ${metric}`).join(", ")}
          FROM by_model GROUP BY GROUPING SETS ((day), (day, model), (day, provider))
        UNION ALL
        SELECT day, 'api_keys', name, ${METRIC_NAMES.join(", ")} FROM (${keys}) keys),
      ranked AS (SELECT *, row_number() OVER (PARTITION BY day, part ORDER BY spend DESC, name) AS place FROM sums)
      SELECT ${DAY} AS date, part, name, k.key_alias, ${METRIC_NAMES.map((metric) => `r.${metric}`).join(", ")}
        FROM ranked r LEFT JOIN keys k ON r.part = 'api_keys' AND k.token = r.name
        WHERE place <= ${MAX_NAMES} AND (part IS NULL OR name <> '') ORDER BY day DESC, place`,
    filter.values,
  );
}

/** A page of days with their breakdowns, and the sums of all days. */
function paged(
  rows: readonly ActivityRow[],
  page: number,
  size: number,
): unknown {
  const days = Map.groupBy(rows, (row) => row.date);
  const shown = [...days].slice((page - 1) * size, page * size);
  const whole = rows.filter((row) => row.part === null);
  const totals = Object.fromEntries(
    METRIC_NAMES.map((metric) => [
      `total_${metric.replace(/^total_/, "")}`,
      whole.reduce((sum, row) => sum + row[metric], 0),
    ]),
  );
  const pages = Math.ceil(days.size / size);
  return {
    results: shown.map(([date, ofDay]) => dayOfActivity(date, ofDay)),
    metadata: { ...totals, page, total_pages: pages, has_more: page < pages },
  };
}

function dayOfActivity(date: string, rows: readonly ActivityRow[]) {
  const whole = rows.find((row) => row.part === null);
  return {
    date,
    metrics: whole === undefined ? null : metricsOf(whole),
    breakdown: Object.fromEntries(
      BREAKDOWN.map((part) => [
        part,
        Object.fromEntries(
          rows
            .filter((row) => row.part === part)
            .map((row) => [
              row.name,
              {
                metrics: metricsOf(row),
                metadata:
                  part === "api_keys" ? { key_alias: row.key_alias } : {},
              },
            ]),
        ),
      ]),
    ),
  };
}

function metricsOf(row: ActivityRow): Metrics {
  return Object.fromEntries(
    METRIC_NAMES.map((metric) => [metric, row[metric]]),
  ) as Metrics;
}

export const ACTIVITY: readonly Route[] = SUBJECTS.map(activityRoute);
