import type { Logger } from "pino";
import { DAY_MS, HOUR_MS } from "../../core/duration.ts";
import type { RetentionConfig } from "../config/types.ts";
import { dropOldMarks } from "../database/journal-marks.ts";
import { dropOldModelHours } from "../database/model-hours.ts";
import type { Pool } from "../database/pool.ts";
import { dropOldRefusals } from "../database/refusals.ts";
import {
  dropExpiredResponses,
  dropOldAudit,
  dropOldPrompts,
  dropOldSpend,
  lastRetention,
  recordRetention,
} from "../database/retention.ts";

/** The clock of a machine that has just started may be wrong until the network has corrected it. */
const FIRST_AFTER_MS = 600_000;
/** Two rounds that confirm each other's clock are at least this far apart. */
const MIN_APART_MS = DAY_MS / 2;
/** A backup that reads the ledger blocks dropping its months, perhaps at the same hour of every day. */
const RETRY_AFTER_MS = HOUR_MS;
/** Rejected calls cost nothing: they are deleted after this time, whatever the configuration. */
const REFUSAL_DAYS = 30;
/** A gateway that has written nothing for so long was removed. */
const MARK_DAYS = 90;
/** Charts of models show 30 days. */
const MODEL_HOUR_DAYS = 35;

export interface Retention {
  /** Runs after ten minutes, then daily; after a failure again in an hour. */
  start(): void;
  stop(): void;
}

interface RetentionOptions {
  readonly pool: Pool;
  /** As it is now: a reload replaces it. */
  readonly config: () => RetentionConfig;
  readonly log: Logger;
}

/** Deletes ledger rows and audit entries older than the configured retention (their totals are kept), old refusals, and expired responses. */
export function createRetention(options: RetentionOptions): Retention {
  const { log } = options;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  function runAfter(pauseMs: number): void {
    if (!stopped) {
      timer = setTimeout(runAndLog, pauseMs);
      timer.unref();
    }
  }

  function runAndLog(): void {
    deleteOldRows(options, Date.now())
      .then(
        () => DAY_MS,
        (error: unknown) => {
          log.warn({ error }, "deleting old rows failed; retrying in an hour");
          return RETRY_AFTER_MS;
        },
      )
      .then(runAfter);
  }

  return {
    start: () => runAfter(FIRST_AFTER_MS),
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

/**
 * One round: deletes what was old at the round before, of this gateway or another one. A clock that is a year ahead for one round
 * must not delete a year.
 */
export async function deleteOldRows(
  options: RetentionOptions,
  now: number,
): Promise<void> {
  const { pool } = options;
  const before = await lastRetention(pool);
  if (before !== null) {
    if (Math.abs(now - before) < MIN_APART_MS) {
      return;
    }
    await deleteAsOf(options, Math.min(before, now));
  }
  await recordRetention(pool, now);
}

async function deleteAsOf(
  { pool, config, log }: RetentionOptions,
  at: number,
): Promise<void> {
  const { spendLogDays, auditLogDays } = config();
  await dropOldRefusals(pool, REFUSAL_DAYS, at);
  await dropOldMarks(pool, MARK_DAYS, at);
  await dropOldModelHours(pool, MODEL_HOUR_DAYS, at);
  await dropExpiredResponses(pool, at);
  if (spendLogDays !== null) {
    await dropOldPrompts(pool, spendLogDays, at);
    const months = await dropOldSpend(pool, spendLogDays, at);
    if (months.length > 0) {
      log.info({ months }, "old ledger rows deleted; their totals are kept");
    }
  }
  if (auditLogDays !== null) {
    const entries = await dropOldAudit(pool, auditLogDays, at);
    if (entries > 0) {
      log.info({ entries }, "old audit entries deleted");
    }
  }
}
