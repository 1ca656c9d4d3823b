import { z } from "zod";
import { name, queryNames, queryNumber } from "../admin/fields.ts";
import { tokenOf } from "../admin/key-fields.ts";
import type { Conditions } from "../admin/paging.ts";
import { adminRoute, type Admin, type AdminRoute } from "../admin/route.ts";
import { findOne, ORGANIZATION } from "../admin/payers.ts";
import { reachableTeam } from "../admin/team-fields.ts";
import { refuseUser, requireUser } from "../admin/user-fields.ts";
import { query } from "../db/pool.ts";
import type { RouteName } from "../access/policy.ts";
import {
  DAY,
  dayRange,
  METRIC_NAMES,
  METRICS,
  onDays,
  type Metrics,
} from "./days.ts";
import { KEY_NOW, ofKey, RENAMED } from "./former-keys.ts";

/** Names shown in one day's breakdown: the dearest. */
const MOST_NAMES = 50;
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
  readonly table: "daily_spend" | "daily_tag_spend";
  readonly column: string;
  readonly params: readonly string[];
  /** Throws 403 for one that is out of reach. */
  readonly refuse: (admin: Admin, id: string) => Promise<unknown>;
  /** Whose activity is shown to somebody who names none and does not see all. */
  readonly own: (admin: Admin) => readonly string[];
}

const SUBJECTS: readonly Subject[] = [
  {
    route: "GET /user/daily/activity",
    table: "daily_spend",
    column: "user_id",
    params: ["user_id", "user_ids"],
    refuse: async (admin, user_id) =>
      admin.actor.userId === user_id ||
      refuseUser(admin, await requireUser(admin.pool, { user_id })),
    own: ({ actor }) => (actor.userId === null ? [] : [actor.userId]),
  },
  {
    route: "GET /team/daily/activity",
    table: "daily_spend",
    column: "team_id",
    params: ["team_id", "team_ids"],
    refuse: (admin, team) => reachableTeam(admin, admin.pool, team),
    own: ({ actor }) => [
      ...[...actor.teams]
        .filter(([, part]) => part === "admin")
        .map(([team]) => team),
      ...actor.organizationTeams,
    ],
  },
  {
    route: "GET /organization/daily/activity",
    table: "daily_spend",
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
    table: "daily_tag_spend",
    column: "tag",
    params: ["tag", "tags"],
    refuse: async () => undefined,
    own: () => [],
  },
];

function activityRoute(subject: Subject): AdminRoute {
  const ids = Object.fromEntries(
    subject.params.map((param) => [param, queryNames.optional()]),
  );
  return adminRoute(
    subject.route,
    z.object({
      ...dayRange,
      ...ids,
      api_key: name.optional(),
      model: name.optional(),
      page: queryNumber(1, 10_000, 1),
      page_size: queryNumber(1, 1_000, 100),
    }),
    async (admin, asked) => {
      const filter = onDays(admin, asked);
      const given: Readonly<Record<string, unknown>> = asked;
      const named = subject.params.flatMap((param) =>
        ((given[param] ?? []) as readonly string[]).slice(),
      );
      for (const id of named) await subject.refuse(admin, id);
      await restrictTo(admin, subject, filter, named);
      if (asked.api_key !== undefined)
        await ofKey(admin.pool, filter, "api_key", tokenOf(asked.api_key));
      if (asked.model !== undefined)
        filter.and("(model = ? OR model_group = ?)", asked.model);
      const rows = await readActivity(admin, subject.table, filter);
      return paged(rows, asked.page, asked.page_size);
    },
  );
}

async function restrictTo(
  admin: Admin,
  { column, own }: Subject,
  filter: Conditions,
  named: readonly string[],
): Promise<void> {
  if (named.length > 0) return filter.and(`${column} = ANY(?)`, named);
  if (admin.reachesAll) return filter.and(`${column} <> ''`);
  const ids = own(admin);
  if (ids.length > 0) return filter.and(`${column} = ANY(?)`, ids);
  if (admin.actor.token !== null)
    await ofKey(admin.pool, filter, "api_key", admin.actor.token);
  else filter.and("false");
}

async function readActivity(
  admin: Admin,
  table: Subject["table"],
  filter: Conditions,
): Promise<readonly ActivityRow[]> {
  const where = filter.where();
  // Keys are many and models are few: the models' sums are made again from their own, not from all rows.
  return query<ActivityRow>(
    admin.pool,
    `WITH by_model AS (SELECT day, model, provider, ${METRICS} FROM ${table} ${where} GROUP BY day, model, provider),
      sums AS (
        SELECT day, CASE WHEN grouping(model) = 0 THEN 'models' WHEN grouping(provider) = 0 THEN 'providers' END AS part,
            coalesce(model, provider) AS name, ${METRIC_NAMES.map((metric) => `sum(${metric}) AS ${metric}`).join(", ")}
          FROM by_model GROUP BY GROUPING SETS ((day), (day, model), (day, provider))
        UNION ALL
        SELECT day, 'api_keys', ${KEY_NOW}, ${METRICS} FROM ${table} ${RENAMED} ${where} GROUP BY 1, 3),
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

export const ACTIVITY: readonly AdminRoute[] = SUBJECTS.map(activityRoute);
