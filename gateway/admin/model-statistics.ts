import { z } from "zod";
import { HOUR_MS } from "../../core/duration.ts";
import { UNANSWERED } from "../database/model-hours.ts";
import { query } from "../database/pool.ts";
import type { Route } from "../http/route.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { out } from "./kinds/out.ts";
import { name } from "./kinds/values.ts";
import { percentile, type LatencyCount } from "./latency-classes.ts";

/** Hours that can be asked for, each with the hours of a step of its chart. */
const STEP_HOURS = { 24: 1, 168: 6, 720: 24 } as const;

const hours = z
  .enum(["24", "168", "720"], "must be 24, 168 or 720")
  .default("24")
  .transform((text) => Number(text) as keyof typeof STEP_HOURS)
  .meta({ description: "The current hour and those before it." });

const figures = {
  requests: out.count,
  failed: out.count,
  interrupted: out.count,
  /** Of answers of providers, within 5 %; null without any. */
  latency_p50_ms: out.count.nullable(),
  latency_p95_ms: out.count.nullable(),
  tokens_per_second: z.number().nullable(),
} as const;

const statistics = adminRoute(
  "GET /model/statistics",
  {
    summary:
      "Get how the calls of each deployment went, at all instances: requests, errors, latency, tokens per second, the last answer and the last failure.",
    input: z.object({ hours }),
    answer: z.object({
      data: z.array(
        z.object({
          model_id: out.text,
          ...figures,
          answered_at: out.moment.nullable().meta({
            description: "Also of calls that only tested.",
          }),
          last_failure: z
            .object({
              at: out.moment,
              status: out.count,
              error: out.text,
            })
            .nullable()
            .meta({ description: "One that the deployment is to blame for." }),
        }),
      ),
    }),
  },
  async (admin, { hours: asked }) => {
    const since = firstHour(admin, asked);
    const [rows, failures] = await Promise.all([
      query<HourSums>(
        admin.pool,
        `SELECT model_id, latency, ${SUMS}, max(last_at) AS last_at FROM model_hours
           WHERE hour >= $1 AND model_id <> '' GROUP BY model_id, latency`,
        [since],
      ),
      lastFailures(admin, since),
    ]);
    const byId = Map.groupBy(rows, ({ model_id: id }) => id);
    const ids = new Set([...byId.keys(), ...failures.keys()]);
    return {
      data: [...ids].map((id) => {
        const own = byId.get(id) ?? [];
        return {
          model_id: id,
          ...figuresOf(own),
          answered_at: answeredAt(own),
          last_failure: failures.get(id) ?? null,
        };
      }),
    };
  },
);

const history = adminRoute(
  "GET /model/history",
  {
    summary:
      "Get how the calls of one model went, step by step: by its alias, of a wildcard those of its deployments.",
    input: z.object({ model: name, hours }),
    answer: z.object({
      step_hours: out.count,
      total: z.object(figures),
      data: z.array(z.object({ from: out.moment, ...figures })),
    }),
  },
  async (admin, { model, hours: asked }) => {
    const stepHours = STEP_HOURS[asked];
    const since = firstHour(admin, asked);
    const group = admin.gateway.catalog.deployments.filter(
      ({ alias }) => alias === model,
    );
    const isWildcard = group.length > 0 && model.endsWith("*");
    const rows = await query<HourSums & { readonly step: number }>(
      admin.pool,
      `SELECT floor(extract(epoch FROM hour - $1) / $2)::int AS step, latency, ${SUMS} FROM model_hours
         WHERE hour >= $1 AND ${isWildcard ? "model_id = ANY($3)" : "model_group = $3"} GROUP BY 1, 2`,
      [
        since,
        (stepHours * HOUR_MS) / 1_000,
        isWildcard ? group.map(({ id }) => id) : model,
      ],
    );
    const bySteps = Map.groupBy(rows, ({ step }) => step);
    return {
      step_hours: stepHours,
      total: figuresOf(rows),
      data: Array.from({ length: asked / stepHours }, (_, step) => ({
        from: new Date(
          Date.parse(since) + step * stepHours * HOUR_MS,
        ).toISOString(),
        ...figuresOf(bySteps.get(step) ?? []),
      })),
    };
  },
);

interface HourSums extends LatencyCount {
  readonly [column: string]: unknown;
  readonly model_id: string;
  readonly failed: number;
  readonly interrupted: number;
  readonly output_tokens: number;
  readonly output_ms: number;
  readonly last_at: Date;
}

const SUMS = ["requests", "failed", "interrupted", "output_tokens", "output_ms"]
  .map((sum) => `sum(${sum})::float8 AS ${sum}`)
  .join(", ");

/** So that the current hour is the last one. */
function firstHour({ now }: Pick<Admin, "now">, asked: number): string {
  const current = Math.floor(now / HOUR_MS) * HOUR_MS;
  return new Date(current - (asked - 1) * HOUR_MS).toISOString();
}

function figuresOf(rows: readonly HourSums[]) {
  const sum = (
    of: "requests" | "failed" | "interrupted" | "output_tokens" | "output_ms",
  ) => rows.reduce((total, row) => total + row[of], 0);
  const ms = sum("output_ms");
  return {
    requests: sum("requests"),
    failed: sum("failed"),
    interrupted: sum("interrupted"),
    latency_p50_ms: percentile(rows, 0.5),
    latency_p95_ms: percentile(rows, 0.95),
    tokens_per_second:
      ms === 0 ? null : Math.round((sum("output_tokens") / ms) * 10_000) / 10,
  };
}

function answeredAt(rows: readonly HourSums[]): string | null {
  const answered = rows
    .filter(({ latency }) => latency !== UNANSWERED)
    .map(({ last_at: at }) => at.getTime());
  return answered.length === 0
    ? null
    : new Date(Math.max(...answered)).toISOString();
}

/** The newest failed calls, where a deployment that fails now has its own: an outage must not make the page slow. */
const READ_FAILURES = 2_000;

/** The last failure of each deployment that counts against it, also of calls that ended at another one. */
async function lastFailures({ pool }: Pick<Admin, "pool">, since: string) {
  const rows = await query<{
    model_id: string;
    at: Date;
    status: number;
    error: string;
  }>(
    pool,
    `SELECT DISTINCT ON (a.model_id) a.model_id, l.ended_at AS at, a.status::int AS status, a.error
       FROM (SELECT ended_at, metadata -> 'attempts' AS attempts FROM spend_log
         WHERE status <> 'success' AND status = 'failure' AND started_at >= $1 ORDER BY started_at DESC LIMIT ${READ_FAILURES}) l
       CROSS JOIN LATERAL jsonb_to_recordset(CASE WHEN jsonb_typeof(l.attempts) = 'array' THEN l.attempts ELSE '[]' END)
         AS a(model_id text, status numeric, error text)
       WHERE a.status IN (401, 402, 403, 408, 429) OR a.status >= 500
       ORDER BY a.model_id, l.ended_at DESC`,
    [since],
  );
  return new Map(
    rows.map(({ model_id: id, at, status, error }) => [
      id,
      { at: at.toISOString(), status, error },
    ]),
  );
}

export const MODEL_STATISTICS: readonly Route[] = [statistics, history];
