import { z } from "zod";
import { out } from "../kinds/out.ts";
import {
  BREAKDOWN,
  type ActivityRow,
  type Breakdown,
} from "./activity-rows.ts";
import { METRIC_NAMES, type Metrics } from "./days.ts";

const metrics = z
  .object(
    Object.fromEntries(METRIC_NAMES.map((metric) => [metric, z.number()])),
  )
  .meta({ id: "Metrics" });

const part = z.record(
  out.text,
  z.object({
    metrics,
    metadata: z.object({
      key_alias: out.text.nullable().optional(),
      team_id: out.text.nullable().optional(),
      team_alias: out.text.nullable().optional(),
      organization_alias: out.text.nullable().optional(),
      user_alias: out.text.nullable().optional(),
      alias: out.text.nullable().optional(),
    }),
  }),
);

/** LiteLLM's parts for which there is nothing here. */
const NO_PARTS = { mcp_servers: {}, endpoints: {} } as const;

/** Days with their sums, each also by model, alias, provider, key and payer. */
export const activity = z
  .object({
    results: z.array(
      z.object({
        date: out.day,
        metrics: metrics.nullable(),
        breakdown: z.object({
          models: part,
          model_groups: part,
          providers: part,
          api_keys: part,
          entities: part,
          mcp_servers: z.object({}),
          endpoints: z.object({}),
        }),
      }),
    ),
    metadata: z.object({
      ...Object.fromEntries(
        METRIC_NAMES.map((metric) => [
          `total_${metric.replace(/^total_/, "")}`,
          z.number(),
        ]),
      ),
      page: out.count,
      total_pages: out.count,
      has_more: z.boolean(),
      api_key_limit: out.count.optional(),
    }),
  })
  .meta({ id: "DailyActivity" });

/** A page of days with their breakdowns, and the sums of all days. */
export function pageOfActivity(
  rows: readonly ActivityRow[],
  page: number,
  size: number,
): unknown {
  const days = Map.groupBy(rows, (row) => row.date);
  const shown = [...days].slice((page - 1) * size, page * size);
  const pages = Math.ceil(days.size / size);
  return {
    results: shown.map(inItsTurn),
    metadata: {
      ...totalsOf(rows),
      page,
      total_pages: pages,
      has_more: page < pages,
    },
  };
}

/** All days with their breakdowns, in the shape of a single page. */
export function wholeActivity(
  rows: readonly ActivityRow[],
  keyLimit: number,
): unknown {
  const days = Map.groupBy(rows, (row) => row.date);
  return {
    results: [...days].map(inItsTurn),
    metadata: {
      ...totalsOf(rows),
      page: 1,
      total_pages: 1,
      has_more: false,
      api_key_limit: keyLimit,
    },
  };
}

function totalsOf(rows: readonly ActivityRow[]) {
  const whole = rows.filter((row) => row.part === null);
  return Object.fromEntries(
    METRIC_NAMES.map((metric) => [
      `total_${metric.replace(/^total_/, "")}`,
      whole.reduce((sum, row) => sum + row[metric], 0),
    ]),
  );
}

/** Built when it is written, one day after the other: those of a year at once would hold up calls. */
function inItsTurn([date, rows]: [string, readonly ActivityRow[]]) {
  return { toJSON: () => dayOfActivity(date, rows) };
}

function dayOfActivity(date: string, rows: readonly ActivityRow[]) {
  const whole = rows.find((row) => row.part === null);
  const parts = BREAKDOWN.map((part) => [
    part,
    Object.fromEntries(
      rows
        .filter((row) => row.part === part)
        .map((row) => [
          row.name,
          { metrics: metricsOf(row), metadata: metadataOf(part, row) },
        ]),
    ),
  ]);
  return {
    date,
    metrics: whole === undefined ? null : metricsOf(whole),
    breakdown: { ...Object.fromEntries(parts), ...NO_PARTS },
  };
}

function metadataOf(part: Breakdown, row: ActivityRow) {
  switch (part) {
    case "api_keys":
      return { key_alias: row.key_alias, team_id: row.team_id };
    case "entities":
      return row.payer ?? {};
    default:
      return {};
  }
}

function metricsOf(row: ActivityRow): Metrics {
  return Object.fromEntries(
    METRIC_NAMES.map((metric) => [metric, row[metric]]),
  ) as Metrics;
}
