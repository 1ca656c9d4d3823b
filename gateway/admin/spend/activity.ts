import { z } from "zod";
import { administeredTeams } from "../../access/actor.ts";
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
import { refuseUser, requireUser } from "../user-access.ts";
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
import { dearestOfEachDay, MOST_NAMES } from "./dearest.ts";
import { keepReachableSpend, ofKey } from "./former-keys.ts";

const BREAKDOWN = ["models", "providers", "api_keys"] as const;

type Breakdown = (typeof BREAKDOWN)[number];

interface ActivityRow extends Metrics {
  readonly date: string;
  /** Which breakdown the row belongs to; null: the whole day. */
  readonly part: Breakdown | null;
  readonly name: string | null;
  readonly key_alias: string | null;
}

interface Subject {
  readonly route: RouteName;
  readonly summary: string;
  /** The column of `daily_spend` that names the payer; null: a tag, whose days have a table of their own. */
  readonly column: PayerColumn | null;
  readonly params: readonly string[];
  /** Throws 403 for one that is out of reach. */
  readonly refuse: (admin: Admin, id: string) => Promise<unknown>;
  /** Whose activity is shown to somebody who names none and does not see all. */
  readonly own: (admin: Admin) => readonly string[];
}

const SUBJECTS: readonly Subject[] = [
  {
    route: "GET /user/daily/activity",
    summary: "A user's days.",
    column: "user_id",
    params: ["user_id", "user_ids"],
    refuse: async (admin, user_id) =>
      admin.actor.userId === user_id ||
      refuseUser(admin, await requireUser(admin.pool, { user_id })),
    own: ({ actor }) => (actor.userId === null ? [] : [actor.userId]),
  },
  {
    route: "GET /team/daily/activity",
    summary: "A team's days.",
    column: "team_id",
    params: ["team_id", "team_ids"],
    refuse: (admin, team) => reachableTeam(admin, admin.pool, team),
    own: ({ actor }) => administeredTeams(actor),
  },
  {
    route: "GET /organization/daily/activity",
    summary: "An organization's days.",
    column: "organization_id",
    params: ["organization_id", "organization_ids"],
    refuse: async (admin, organizationId) => {
      await findOne(admin.pool, ORGANIZATION, {
        organization_id: organizationId,
      });
      // Members see that they are in it; what it spends is for its admins.
      admin.refuse({
        what: `organization ${organizationId}`,
        organizationId,
        teamId: null,
      });
    },
    own: ({ actor }) => [...actor.organizations],
  },
  {
    route: "GET /tag/daily/activity",
    summary: "A tag's days.",
    column: null,
    params: ["tag", "tags"],
    refuse: async () => undefined,
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
    async (admin, asked) => {
      const filter = onDays(admin, asked);
      // Of a user who is in several teams each team's admin sees that team's part.
      if (subject.column === "user_id") {
        await keepReachableSpend(admin, filter);
      }
      const given: Readonly<Record<string, unknown>> = asked;
      const named = subject.params.flatMap((param) =>
        ((given[param] ?? []) as readonly string[]).slice(),
      );
      for (const id of named) {
        await subject.refuse(admin, id);
      }
      const chosenKey =
        asked.api_key === undefined ? null : tokenOf(asked.api_key);
      const ownKey = restrictTo(admin, subject, filter, named);
      for (const token of [ownKey, chosenKey]) {
        if (token !== null) {
          await ofKey(admin.pool, filter, "api_key", token);
        }
      }
      if (asked.model !== undefined) {
        filter.and("(model = ? OR model_group = ?)", asked.model);
      }
      const rows = await readActivity(admin, subject, asked, filter, {
        byKey: ownKey !== null || chosenKey !== null,
      });
      return paged(rows, asked.page, asked.page_size);
    },
  );
}

/** Keeps rows of those named, else of those that may be seen; answers the key to which it comes down, if it does. */
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
  // Keys are many and models are few: the models' sums are not made from the rows of all keys.
  const modelRows =
    column === null
      ? table
      : dailyRowsWith(byKey ? [column, "api_key"] : [column]);
  const keys = dearestOfEachDay(admin, range, {
    from: table,
    filter,
    column: "api_key",
    most: MOST_NAMES,
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
        WHERE place <= ${MOST_NAMES} AND (part IS NULL OR name <> '') ORDER BY day DESC, place`,
    filter.values,
  );
}

/** A page of days with their breakdowns; the sums of all days beside it. */
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
