import type { Logger } from "pino";
import type { RetentionConfig } from "../config/types.ts";
import type { Pool } from "../db/pool.ts";
import { dropOldAudit, dropOldSpend } from "../db/retention.ts";

const DAY_MS = 86_400_000;

export interface Retention {
  /** From now on once a day; the first time at once. */
  start(): void;
  stop(): void;
}

/** Lets go of ledger rows and audit entries that are older than the configuration keeps them; their sums stay. */
export function createRetention(options: {
  readonly pool: Pool;
  readonly config: RetentionConfig;
  readonly log: Logger;
}): Retention {
  const { pool, log } = options;
  const { spendLogDays, auditLogDays } = options.config;
  let timer: NodeJS.Timeout | undefined;

  async function run(): Promise<void> {
    const now = Date.now();
    if (spendLogDays !== null) {
      const months = await dropOldSpend(pool, spendLogDays, now);
      if (months.length > 0)
        log.info({ months }, "old ledger rows were dropped; their sums stay");
    }
    if (auditLogDays !== null) {
      const entries = await dropOldAudit(pool, auditLogDays, now);
      if (entries > 0) log.info({ entries }, "old audit entries were dropped");
    }
  }

  function runAndLog(): void {
    run().catch((error: unknown) =>
      log.warn(
        { error },
        "old rows could not be dropped; this is tried again tomorrow",
      ),
    );
  }

  return {
    start() {
      if (spendLogDays === null && auditLogDays === null) return;
      runAndLog();
      timer = setInterval(runAndLog, DAY_MS);
      timer.unref();
    },
    stop: () => clearInterval(timer),
  };
}
