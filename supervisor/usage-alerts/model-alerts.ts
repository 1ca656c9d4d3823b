import type { Client } from "pg";
import { latency } from "../../core/words.ts";
import type { Alarm } from "../alerts/alarm.ts";
import { rowsOf } from "../backup/database.ts";
import type { UsageAlertsConfig } from "./config.ts";
import { OnceAnHour } from "./once-an-hour.ts";

/** A slower model is only reported if its answers begin this much later, in seconds. */
const LEAST_DELAY = 1;

/** Median seconds from the start of successful calls to their first token. */
const MEDIAN = `percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM coalesce(completion_started_at, ended_at) - started_at))
  FILTER (WHERE status = 'success')`;

interface Recent extends Record<string, unknown> {
  readonly model: string;
  readonly calls: number;
  readonly failed: number;
  /** Median seconds to the first token; null without successful calls. */
  readonly first: number | null;
}

/**
 * Finds models that failed often in the last quarter of an hour, or answered much later than in the day before. That day is read
 * once an hour for each model that could be late.
 */
export class ModelTrouble {
  readonly #usual = new OnceAnHour<number | null>();

  async find(
    client: Client,
    { failed_percent, slower, least_calls }: UsageAlertsConfig["models"],
    now: number,
  ): Promise<readonly Alarm[]> {
    const found: Alarm[] = [];
    for (const recent of await recentCalls(client, least_calls, now)) {
      const { model, calls, failed, first } = recent;
      if (failed * 100 >= calls * failed_percent) {
        found.push(failureAlarm(recent));
      }
      if (first === null || first < LEAST_DELAY) {
        continue;
      }
      const usual = await this.#usual.get(model, now, () =>
        usualDelay(client, model, least_calls, now),
      );
      if (
        usual !== null &&
        first >= usual * slower &&
        first - usual >= LEAST_DELAY
      ) {
        found.push(delayAlarm(model, first, usual));
      }
    }
    return found;
  }
}

function recentCalls(
  client: Client,
  leastCalls: number,
  now: number,
): Promise<readonly Recent[]> {
  return rowsOf<Recent>(
    client,
    `SELECT model_group AS model, count(*)::int AS calls, (count(*) FILTER (WHERE status = 'failure'))::int AS failed,
         ${MEDIAN} AS first
       FROM report_calls
       WHERE started_at > $1::timestamptz - interval '1 hour' AND ended_at > $1::timestamptz - interval '15 minutes'
         AND ended_at <= $1 AND model_group IS NOT NULL
       GROUP BY 1 HAVING count(*) >= $2 ORDER BY 1`,
    [new Date(now), leastCalls],
  );
}

/** Median seconds to the first token on the day before the last hour; null without enough calls. */
async function usualDelay(
  client: Client,
  model: string,
  leastCalls: number,
  now: number,
): Promise<number | null> {
  const [row] = await rowsOf<{ first: number | null }>(
    client,
    `SELECT ${MEDIAN} AS first FROM report_calls
       WHERE model_group = $3 AND started_at > $1::timestamptz - interval '1 day'
         AND started_at <= $1::timestamptz - interval '1 hour'
       HAVING count(*) >= $2`,
    [new Date(now), leastCalls, model],
  );
  return row?.first ?? null;
}

/** An alarm for models whose calls today have no price, as their spend is too low. */
export async function findUnpricedModels(
  client: Client,
): Promise<readonly Alarm[]> {
  const unpriced = await rowsOf<{ model: string; calls: string }>(
    client,
    `SELECT model_group AS model, sum(unpriced)::text AS calls FROM report_daily_part_spend
       WHERE part = 'proxy' AND day = (SELECT max(day) FROM report_daily_part_spend WHERE part = 'proxy')
       GROUP BY 1 HAVING sum(unpriced) > 0 ORDER BY 1`,
  );
  return unpriced.map(({ model, calls }) => ({
    fingerprint: `unpriced-model:${model}`,
    level: "warning",
    subject: `model ${model}`,
    text: `${calls === "1" ? "1 call" : `${calls} calls`} today without a price: they count as free`,
    command: `set input_cost_per_token and output_cost_per_token of ${model} in config/gateway.local.yaml`,
  }));
}

function failureAlarm({ model, calls, failed }: Recent): Alarm {
  return {
    fingerprint: `model:failures:${model}`,
    level: "warning",
    subject: `model ${model}`,
    text: `${failed} of ${calls} calls failed within 15 minutes`,
    command: "hearth models list",
  };
}

function delayAlarm(model: string, first: number, usual: number): Alarm {
  return {
    fingerprint: `model:delay:${model}`,
    level: "warning",
    subject: `model ${model}`,
    text: `answers begin after ${latency(first * 1000)}, usually after ${latency(usual * 1000)}`,
    command: "hearth models list",
  };
}
