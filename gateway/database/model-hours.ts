import { DAY_MS } from "../../core/duration.ts";
import { query, type Pool } from "./pool.ts";

/** From one class of latencies to the next; a percentile is off by less than half of it. */
export const LATENCY_GROWTH = 1.1;
/** In place of a class: without an answer of a provider. */
export const UNANSWERED = -1;
/** In place of a class: a test that a provider answered. */
const TEST_ANSWERED = -2;

const IS_TEST = "call_type = 'health_check'";
const IS_ANSWERED = "status = 'success' AND NOT cache_hit";
const LATENCY = `CASE WHEN NOT (${IS_ANSWERED}) THEN ${UNANSWERED} WHEN ${IS_TEST} THEN ${TEST_ANSWERED}
    ELSE floor(ln(greatest(extract(epoch FROM ended_at - started_at)::float8 * 1000, 1)) / ln(${LATENCY_GROWTH}::float8))::smallint END`;
/** Of answers whose tokens were timed; null for others. */
const GENERATED_MS = `CASE WHEN ${IS_ANSWERED} AND NOT ${IS_TEST} AND completion_tokens > 0 THEN
    CASE WHEN completion_started_at IS NULL THEN waited_ms
      ELSE round(extract(epoch FROM ended_at - completion_started_at) * 1000) END END`;

const SUMS = {
  requests: `count(*) FILTER (WHERE NOT ${IS_TEST})`,
  failed: "count(*) FILTER (WHERE status = 'failure')",
  interrupted: "count(*) FILTER (WHERE status = 'interrupted')",
  output_tokens:
    "coalesce(sum(completion_tokens) FILTER (WHERE generated_ms > 0), 0)",
  output_ms: "coalesce(sum(generated_ms) FILTER (WHERE generated_ms > 0), 0)",
} as const;

/** Adds ledger rows (a table or subquery with the columns of `spend_log`) to `model_hours`; failed tests do not count. */
export function addToModelHours(from: string): string {
  const sums = Object.keys(SUMS);
  return `INSERT INTO model_hours (hour, model_group, model_id, latency, ${sums.join(", ")}, last_at)
    SELECT date_trunc('hour', ended_at), model_group, coalesce(model_id, ''), ${LATENCY}, ${Object.values(SUMS).join(", ")}, max(ended_at)
      FROM (SELECT *, ${GENERATED_MS} AS generated_ms FROM ${from}
        WHERE payer IS NULL AND model_group IS NOT NULL AND (${IS_ANSWERED} OR NOT ${IS_TEST})) AS calls
      GROUP BY 1, 2, 3, 4
    ON CONFLICT (hour, model_group, model_id, latency) DO UPDATE
      SET ${sums.map((sum) => `${sum} = model_hours.${sum} + excluded.${sum}`).join(", ")},
        last_at = greatest(model_hours.last_at, excluded.last_at)`;
}

/** Deletes the hours that no chart shows any more. */
export async function dropOldModelHours(
  pool: Pool,
  days: number,
  now: number,
): Promise<void> {
  const before = new Date(now - days * DAY_MS).toISOString();
  await query(pool, "DELETE FROM model_hours WHERE hour < $1", [before]);
}
