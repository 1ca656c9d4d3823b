import { setImmediate as nextTurn } from "node:timers/promises";
import type { Logger } from "pino";
import { recordRows } from "../db/ledger.ts";
import {
  CALL_DEADLINE_MS,
  DatabaseUnavailable,
  within,
  type Pool,
} from "../db/pool.ts";
import {
  openCounters,
  readTotals,
  type Counter,
  type Total,
} from "../db/totals.ts";
import type { Journal, JournalBatch, JournalRow } from "./journal.ts";
import type { LimitStore } from "./limits.ts";
import { nanosFromCost } from "./money.ts";
import { createMutex } from "./mutex.ts";
import type { PendingSums } from "./pending.ts";
import type { Intent, Outcome } from "./records.ts";
import { recordAll } from "./refused-rows.ts";
import { spendRow, type SpendRow } from "./rows.ts";
import { windowStart } from "./windows.ts";

const BATCH_ROWS = 1_000;
const ROWS_AT_ONCE = 50;
const DRAIN_EVERY_MS = 200;
const RETRY_AFTER_MS = 1_000;

export interface Ledger {
  /** Brings what earlier lives left in the journal into the ledger, then goes on draining. */
  start(): Promise<void>;
  /**
   * Gives the limit store the totals that it asked for. While the database is away, a window that began since holds
   * nothing in the ledger; for any other it throws {@link DatabaseUnavailable}.
   */
  loadTotals(counters: readonly Counter[]): Promise<void>;
  /** Reads the totals of payers again whose spend or windows an admin changed; throws {@link DatabaseUnavailable}. */
  reload(entities: readonly string[]): Promise<void>;
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
  /** When the database was last known to be there. */
  readonly databaseSeenAt: () => number;
  /** A payer of this kind (`key`, `team` …) reached its soft budget by what was drained here. */
  readonly onSoftBudget: (kind: string) => void;
}

/**
 * Drains the journal into the database, in batches, for as long as the gateway runs.
 * While the database is away it tries again; the journal keeps what is waiting.
 */
export function createLedger(options: LedgerOptions): Ledger {
  const { pool, callPool, journal, limits, pending } = options;
  const { timeZone, proxyDuration, log } = options;
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

  async function drainBatch(): Promise<number> {
    batch ??= await journal.read(BATCH_ROWS);
    const { length } = batch.rows;
    if (length > 0) await alone(commitBatch);
    else batch = null;
    return length;
  }

  async function commitBatch(): Promise<void> {
    if (batch === null) return;
    const { rows: entries, position } = batch;
    uncertain = true;
    const counters = countersOf(entries);
    const { inserted, totals, softBudgets } = await recordAll(
      await rowsOf(entries),
      (rows) => recordRows(pool, rows, counters, proxyDuration, timeZone),
      log,
    );
    for (const { outcome } of entries)
      if (outcome !== null && !recovering)
        pending.subtract(outcome.charged, nanosFromCost(outcome.spend));
    journal.commit(position);
    batch = null;
    uncertain = false;
    drained += inserted.size;
    for (const notice of softBudgets) {
      log.warn(notice, "a soft budget was reached");
      options.onSoftBudget(kindOf(notice.entity));
    }
    await assignTotals(totals);
  }

  /** In pieces, between which calls go on. */
  async function rowsOf(
    entries: readonly JournalRow<Intent, Outcome>[],
  ): Promise<readonly SpendRow[]> {
    const rows: SpendRow[] = [];
    for (let at = 0; at < entries.length; at += ROWS_AT_ONCE) {
      if (at > 0) await nextTurn();
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

  /** Runs alone. Spend of an uncertain batch would be in the total and still pending: the batch is committed first. */
  async function ledgerTotals(
    counters: readonly Counter[],
  ): Promise<readonly Total[]> {
    if (uncertain)
      try {
        await commitBatch();
      } catch (error) {
        throw new DatabaseUnavailable(error);
      }
    return readTotals(callPool, counters);
  }

  async function findTotals(
    counters: readonly Counter[],
  ): Promise<readonly Total[]> {
    try {
      const totals = alone(() => ledgerTotals(counters));
      // A drain that waits for Postgres must not make a call wait with it.
      return await within(CALL_DEADLINE_MS, totals);
    } catch (error) {
      const seenAt = options.databaseSeenAt();
      const began = ({ window }: Counter) => windowStart(window) > seenAt;
      if (!(error instanceof DatabaseUnavailable) || !counters.every(began))
        throw error;
      return counters.map((counter) => ({ ...counter, spend: 0, version: 0 }));
    }
  }

  async function assignTotals(totals: readonly Total[]): Promise<void> {
    if (totals.length === 0) return;
    await limits.assign(
      totals.map(({ entity, window, spend, version }) => ({
        entity,
        window,
        total: nanosFromCost(spend),
        version,
        pending: pending.of(entity, window),
      })),
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
      if (rows < BATCH_ROWS) return sum;
    }
  }

  function tick(): void {
    drain()
      .then(
        () => {
          if (away) log.info("the database is back; the journal is drained");
          away = false;
        },
        (error: unknown) => {
          if (!away)
            log.error(
              {
                error: error instanceof Error ? error.message : String(error),
                journal: journal.state(),
              },
              "the ledger cannot be written now; the journal keeps what is waiting",
            );
          away = true;
        },
      )
      .finally(() => {
        if (!stopped)
          timer = setTimeout(tick, away ? RETRY_AFTER_MS : DRAIN_EVERY_MS);
      });
  }

  return {
    drained: () => drained,
    async start() {
      await drain();
      recovering = false;
      timer = setTimeout(tick, DRAIN_EVERY_MS);
    },
    async loadTotals(counters) {
      await assignTotals(await findTotals(counters));
    },
    async reload(entities) {
      await alone(async () => {
        const counters = await openCounters(callPool, entities);
        await assignTotals(await ledgerTotals(counters));
      });
    },
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
  for (const windows of charged)
    for (const [entity, window] of Object.entries(windows))
      // Postgres holds no NUL, not even in a question.
      if (!entity.includes("\0"))
        counters.set(`${entity}|${window}`, { entity, window });
  return [...counters.values()];
}
