import type { Client } from "pg";
import { MINUTE_MS } from "../../core/duration.ts";
import { readVariable } from "../../core/environment.ts";
import type { Alarm, ReplacedAlarms } from "../alerts/alarm.ts";
import { withDatabase } from "../backup/database.ts";
import type { Context, Module } from "../context.ts";
import { jobsAreOn } from "../jobs/job-switch.ts";
import { findSoftBudgets, findSpentBudgets } from "./budget-alerts.ts";
import type { UsageAlertsConfig } from "./config.ts";
import { findUnpricedModels, ModelTrouble } from "./model-alerts.ts";
import { UnusualSpend } from "./unusual-spend.ts";

const POLL_EVERY_MS = MINUTE_MS;

/** The first words of the fingerprints. */
const KINDS = [
  "soft-budget",
  "budget",
  "unusual-spend",
  "unpriced-model",
  "model",
] as const;

type Finders = Readonly<
  Record<(typeof KINDS)[number], (client: Client) => Promise<readonly Alarm[]>>
>;

/** Looks at budgets, spend and models every minute, on the host that runs jobs. */
export function openUsageAlerts({
  env,
  alarms,
  config,
}: Pick<Context, "env" | "alarms" | "config">): Module {
  const url = readVariable("SUPERVISOR_DATABASE_URL", env);
  if (url === undefined || !jobsAreOn(env)) {
    return {
      // They may be of the previous process, which checked usage.
      start: () => KINDS.forEach((kind) => alarms.retain(`${kind}:`, [])),
      stop: async () => {},
    };
  }
  const check = usageAlerts(config.usage_alerts, alarms, Date.now);
  const ended = new AbortController();
  let polling: Promise<void> | undefined;
  const poll = () => {
    polling ??= check(url, ended.signal)
      // A Postgres that does not answer is reported by its check.
      .catch(() => {})
      .finally(() => {
        polling = undefined;
      });
  };
  let timer: NodeJS.Timeout | undefined;
  return {
    start: () => {
      timer = setInterval(poll, POLL_EVERY_MS);
    },
    stop: async () => {
      clearInterval(timer);
      ended.abort();
      await polling;
    },
  };
}

/** A function that reads the ledger once and replaces all alarms about usage. */
export function usageAlerts(
  config: UsageAlertsConfig,
  alarms: Pick<ReplacedAlarms, "replace">,
  now: () => number,
): (databaseUrl: string, signal: AbortSignal) => Promise<void> {
  const unusual = new UnusualSpend();
  const models = new ModelTrouble();
  const finders: Finders = {
    "soft-budget": findSoftBudgets,
    budget: (client) => findSpentBudgets(client, config.budgets_at),
    "unusual-spend": (client) =>
      unusual.find(client, config.unusual_spend, now()),
    "unpriced-model": findUnpricedModels,
    model: (client) => models.find(client, config.models, now()),
  };
  return (databaseUrl, signal) =>
    withDatabase(databaseUrl, signal, async (client) => {
      for (const kind of KINDS) {
        alarms.replace(`${kind}:`, await finders[kind](client));
      }
    });
}
