import { setImmediate as nextTurn } from "node:timers/promises";
import type { Logger } from "pino";
import { recordRows } from "../database/ledger.ts";
import type { Pool } from "../database/pool.ts";
import type { Counter } from "./payers.ts";
import type { Journal, JournalBatch, JournalRow } from "../journal/journal.ts";
import { createLedgerTotals, type LedgerTotals } from "./ledger-totals.ts";
import type { LimitStore } from "../limits/limits.ts";
import { nanosFromCost } from "../pricing/money.ts";
import { createMutex } from "./mutex.ts";
import type { PendingSums } from "./pending.ts";
import type { Intent, Outcome } from "./records.ts";
import { recordAll } from "./refused-rows.ts";
import { spendRow, type SpendRow } from "./rows.ts";

const BATCH_ROWS = 1_000;
const ROWS_AT_ONCE = 50;
const DRAIN_EVERY_MS = 200;
const RETRY_AFTER_MS = 1_000;

export interface Ledger {
  /** Brings what earlier lives left in the journal into the ledger, then goes on draining. */
  start(): Promise<void>;
  readonly totals: Pick<LedgerTotals, "load" | "prepare" | "reload">;
  /** Brings everything that is in the journal now into the database; throws when it cannot. */
  flush(): Promise<void>;
  /** Ends draining after the batch under way. */
  stop(): Promise<void>;
  readonly drained: () => number;
}

export interface LedgerOptions {
  readonly pool: Pool;
  /** For totals that calls wait for. */
  readonly callPool: Pool;
  readonly journal: Journal<Intent, Outcome>;
  readonly limits: LimitStore;
  readonly pending: PendingSums;
  readonly timeZone: string;
  readonly proxyDuration: string | null;
  readonly log: Logger;
  readonly databaseConnected: () => boolean;
  /** A payer of this kind (`key`, `team` …) reached its soft budget by what was drained here. */
  readonly onSoftBudget: (kind: string) => void;
}

/**
 * Drains the journal into the database, in batches, for as long as the gateway runs.
 * While the database is away it tries again; the journal keeps what is waiting.
 */
export function createLedger(options: LedgerOptions): Ledger {
  const { pool, journal, pending, timeZone, proxyDuration, log } = options;
  let running: Promise<number> | null = null;
  let stopped = false;
  let away = false;
  let drained = 0;
  /** Rows of earlier lives were never pending in this one. */
  let recovering = true;
  let timer: NodeJS.Timeout | undefined;

  /** The journal gives each row once: a batch that could not be committed is kept and tried again. */
  let batch: JournalBatch<Intent, Outcome> | null = null;
  /** The batch at hand may have been committed although its attempt failed: the answer to a COMMIT can be lost. */
  let uncertain = false;

  /** Totals are not read between a commit and its assign: they would hold spend that is still pending here. */
  const alone = createMutex();
  const totals = createLedgerTotals({
    ...options,
    alone,
    async resolve() {
      if (uncertain) {
        await commitBatch();
      }
    },
  });

  async function drainBatch(): Promise<number> {
    batch ??= await journal.read(BATCH_ROWS);
    const { length } = batch.rows;
    if (length > 0) {
      await alone(commitBatch);
    } else {
      batch = null;
    }
    return length;
  }

  async function commitBatch(): Promise<void> {
    if (batch === null) {
      return;
    }
    const { rows: entries, position } = batch;
    uncertain = true;
    const counters = countersOf(entries);
    const recorded = await recordAll(
      await rowsOf(entries),
      (rows) => recordRows(pool, rows, counters, proxyDuration, timeZone),
      log,
    );
    for (const { outcome } of entries) {
      if (outcome !== null && !recovering) {
        pending.subtract(outcome.charged, nanosFromCost(outcome.spend));
      }
    }
    journal.commit(position);
    batch = null;
    uncertain = false;
    drained += recorded.inserted.size;
    for (const notice of recorded.softBudgets) {
      log.warn(notice, "a soft budget was reached");
      options.onSoftBudget(kindOf(notice.entity));
    }
    await totals.assign(recorded.totals);
  }

  /** In pieces, between which calls go on. */
  async function rowsOf(
    entries: readonly JournalRow<Intent, Outcome>[],
  ): Promise<readonly SpendRow[]> {
    const rows: SpendRow[] = [];
    for (let at = 0; at < entries.length; at += ROWS_AT_ONCE) {
      if (at > 0) {
        await nextTurn();
      }
      rows.push(...entries.slice(at, at + ROWS_AT_ONCE).map(rowOf));
    }
    return rows;
  }

  function rowOf(entry: JournalRow<Intent, Outcome>): SpendRow {
    return spendRow(
      entry.intent,
      entry.outcome ?? { recoveredAt: entry.recoveredAt },
      timeZone,
    );
  }

  /** Drains until nothing is left; one drain at a time. */
  function drain(): Promise<number> {
    running ??= drainAll().finally(() => {
      running = null;
    });
    return running;
  }

  async function drainAll(): Promise<number> {
    let sum = 0;
    for (;;) {
      const rows = await drainBatch();
      sum += rows;
      if (rows < BATCH_ROWS) {
        return sum;
      }
    }
  }

  function tick(): void {
    drain()
      .then(totals.confirm)
      .then(
        () => {
          if (away) {
            log.info("the database is back; the journal is drained");
          }
          away = false;
        },
        (error: unknown) => {
          if (!away) {
            log.error(
              {
                error: error instanceof Error ? error.message : String(error),
                journal: journal.state(),
              },
              "the ledger cannot be written now; the journal keeps what is waiting",
            );
          }
          away = true;
        },
      )
      .finally(() => {
        if (!stopped) {
          timer = setTimeout(tick, away ? RETRY_AFTER_MS : DRAIN_EVERY_MS);
        }
      });
  }

  return {
    drained: () => drained,
    async start() {
      await drain();
      recovering = false;
      timer = setTimeout(tick, DRAIN_EVERY_MS);
    },
    totals,
    async flush() {
      await running?.catch(() => undefined);
      await drain();
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running?.catch(() => undefined);
    },
  };
}

/** The kind of payer that an entity's name begins with. */
function kindOf(entity: string): string {
  return entity.slice(0, entity.indexOf(":"));
}

/** The counters that held rows of a batch as pending, each once. Rows of one key share their windows. */
function countersOf(
  entries: readonly JournalRow<Intent, Outcome>[],
): readonly Counter[] {
  const charged = new Set(entries.map(({ outcome }) => outcome?.charged ?? {}));
  const counters = new Map<string, Counter>();
  for (const windows of charged) {
    for (const [entity, window] of Object.entries(windows))
    // Postgres holds no NUL, not even in a question.
    {
      if (!entity.includes("\0")) {
        counters.set(`${entity}|${window}`, { entity, window });
      }
    }
  }
  return [...counters.values()];
}
