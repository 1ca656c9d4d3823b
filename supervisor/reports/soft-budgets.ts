import type { Alarms } from "../alerts/alarm.ts";
import { rowsOf, withDatabase } from "../backup/database.ts";
import { readVariable } from "../../core/environment.ts";
import { jobsAreOn } from "../jobs/job-switch.ts";
import { money } from "../../core/words.ts";
import type { Context } from "../context.ts";
import { ENTITY_NAME, nameOf } from "./budgets.ts";

const POLL_EVERY_MS = 60_000;

/** Polls every minute where scheduled jobs run. Returns a function that stops polling. */
export function watchSoftBudgets({
  env,
  alarms,
}: Pick<Context, "env" | "alarms">): () => void {
  const url = readVariable("SUPERVISOR_DATABASE_URL", env);
  if (url === undefined || !jobsAreOn(env)) {
    return () => {};
  }
  const ended = new AbortController();
  let isPolling = false;
  const timer = setInterval(() => {
    if (isPolling) {
      return;
    }
    isPolling = true;
    checkSoftBudgets(url, alarms, ended.signal)
      // A Postgres that does not answer is reported by its check.
      .catch(() => {})
      .finally(() => {
        isPolling = false;
      });
  }, POLL_EVERY_MS);
  return () => {
    clearInterval(timer);
    ended.abort();
  };
}

/** Raises an alarm for each reached soft budget, until its window ends or it is increased; no call is rejected. */
export async function checkSoftBudgets(
  databaseUrl: string,
  alarms: Alarms,
  signal: AbortSignal,
): Promise<void> {
  const budgets = await withDatabase(databaseUrl, signal, (client) =>
    rowsOf<{
      entity: string;
      name: string | null;
      spend: string | null;
      soft: string | null;
      reached: boolean | null;
    }>(
      client,
      `SELECT e.entity, ${ENTITY_NAME} AS name, b.spend::text AS spend, b.soft_budget::text AS soft, b.spend >= b.soft_budget AS reached
         FROM (SELECT DISTINCT entity FROM report_notices WHERE kind = 'soft_budget') e LEFT JOIN report_budgets b USING (entity)`,
    ),
  );
  for (const { entity, name, spend, soft, reached } of budgets) {
    const fingerprint = `soft-budget:${entity}`;
    const subject = nameOf(entity, name);
    if (reached === true) {
      alarms.raise({
        fingerprint,
        level: "warning",
        subject,
        text: `${subject} has reached its soft budget: ${money(Number(spend))} of ${money(Number(soft))} spent; calls continue`,
        command: "hearth report spend",
      });
    } else {
      alarms.clear(fingerprint);
    }
  }
}
