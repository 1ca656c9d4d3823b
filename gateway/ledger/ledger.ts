import { setImmediate as nextTurn } from "node:timers/promises";
import type { Logger } from "pino";
import { recordRows } from "../database/ledger.ts";
import type { Pool } from "../database/pool.ts";
import type { Counter } from "./payers.ts";
import type { Journal, JournalBatch, JournalRow } from "../journal/journal.ts";
import { LedgerTotals } from "./ledger-totals.ts";
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
  /** Writes the journal's rows of previous processes to the ledger, then keeps draining. */
  start(): Promise<void>;
  readonly totals: Pick<LedgerTotals, "load" | "prepare" | "reload">;
  /** Writes everything in the journal to the database; throws if that fails. */
  flush(): Promise<void>;
  /** Stops draining after the current batch. */
  stop(): Promise<void>;
  drained(): number;
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
 * While the database is unavailable it retries; the journal keeps the calls.
 */
export function createLedger(options: LedgerOptions): Ledger {
  return new JournalLedger(options);
}

class JournalLedger implements Ledger {
  readonly totals: LedgerTotals;
  readonly #options: LedgerOptions;
  readonly #journal: Journal<Intent, Outcome>;
  readonly #pending: PendingSums;
  readonly #timeZone: string;
  readonly #log: Logger;
  #running: Promise<number> | null = null;
  #stopped = false;
  #away = false;
  #drained = 0;
  /** Rows of previous processes were never pending in this one. */
  #recovering = true;
  #timer: NodeJS.Timeout | undefined;
  /** The journal gives each row once: a batch that could not be committed is kept and tried again. */
  #batch: JournalBatch<Intent, Outcome> | null = null;
  /** The current batch may have been committed although its attempt failed: the answer to a COMMIT can be lost. */
  #uncertain = false;
  /** Totals are not read between a commit and its assign: they would include spend that is still pending here. */
  readonly #alone = createMutex();

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#journal = options.journal;
    this.#pending = options.pending;
    this.#timeZone = options.timeZone;
    this.#log = options.log;
    this.totals = new LedgerTotals({
      ...options,
      alone: this.#alone,
      resolve: async () => {
        if (this.#uncertain) {
          await this.#commitBatch();
        }
      },
    });
  }

  drained(): number {
    return this.#drained;
  }

  async start(): Promise<void> {
    await this.#drain();
    this.#recovering = false;
    this.#timer = setTimeout(() => this.#tick(), DRAIN_EVERY_MS);
  }

  async flush(): Promise<void> {
    await this.#running?.catch(() => undefined);
    await this.#drain();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#running?.catch(() => undefined);
  }

  async #drainBatch(): Promise<number> {
    this.#batch ??= await this.#journal.read(BATCH_ROWS);
    const { length } = this.#batch.rows;
    if (length > 0) {
      await this.#alone(() => this.#commitBatch());
    } else {
      this.#batch = null;
    }
    return length;
  }

  async #commitBatch(): Promise<void> {
    if (this.#batch === null) {
      return;
    }
    const { rows: entries, position } = this.#batch;
    this.#uncertain = true;
    const counters = countersOf(entries);
    const recorded = await recordAll(
      await this.#rowsOf(entries),
      (rows) =>
        recordRows(
          this.#options.pool,
          rows,
          counters,
          this.#options.proxyDuration,
          this.#timeZone,
        ),
      this.#log,
    );
    for (const { outcome } of entries) {
      if (outcome !== null && !this.#recovering) {
        this.#pending.subtract(outcome.charged, nanosFromCost(outcome.spend));
      }
    }
    this.#journal.commit(position);
    this.#batch = null;
    this.#uncertain = false;
    this.#drained += recorded.inserted.size;
    for (const notice of recorded.softBudgets) {
      this.#log.warn(notice, "soft budget reached");
      this.#options.onSoftBudget(kindOf(notice.entity));
    }
    await this.totals.assign(recorded.totals);
  }

  /** In pieces between which calls are served. */
  async #rowsOf(
    entries: readonly JournalRow<Intent, Outcome>[],
  ): Promise<readonly SpendRow[]> {
    const rows: SpendRow[] = [];
    for (let at = 0; at < entries.length; at += ROWS_AT_ONCE) {
      if (at > 0) {
        await nextTurn();
      }
      rows.push(
        ...entries
          .slice(at, at + ROWS_AT_ONCE)
          .map((entry) => this.#rowOf(entry)),
      );
    }
    return rows;
  }

  #rowOf(entry: JournalRow<Intent, Outcome>): SpendRow {
    return spendRow(
      entry.intent,
      entry.outcome ?? { recoveredAt: entry.recoveredAt },
      this.#timeZone,
    );
  }

  /** Drains until nothing is left; one drain at a time. */
  #drain(): Promise<number> {
    this.#running ??= this.#drainAll().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #drainAll(): Promise<number> {
    let sum = 0;
    for (;;) {
      const rows = await this.#drainBatch();
      sum += rows;
      if (rows < BATCH_ROWS) {
        return sum;
      }
    }
  }

  #tick(): void {
    this.#drain()
      .then(() => this.totals.confirm())
      .then(
        () => {
          if (this.#away) {
            this.#log.info("database available again; journal drained");
          }
          this.#away = false;
        },
        (error: unknown) => {
          if (!this.#away) {
            this.#log.error(
              {
                error: error instanceof Error ? error.message : String(error),
                journal: this.#journal.state(),
              },
              "ledger unavailable; calls are kept in the journal",
            );
          }
          this.#away = true;
        },
      )
      .finally(() => {
        if (!this.#stopped) {
          this.#timer = setTimeout(
            () => this.#tick(),
            this.#away ? RETRY_AFTER_MS : DRAIN_EVERY_MS,
          );
        }
      });
  }
}

/** The kind of payer that an entity's name begins with. */
function kindOf(entity: string): string {
  return entity.slice(0, entity.indexOf(":"));
}

/** The counters with rows of a batch as pending, each once. Rows of one key share their windows. */
function countersOf(
  entries: readonly JournalRow<Intent, Outcome>[],
): readonly Counter[] {
  const charged = new Set(entries.map(({ outcome }) => outcome?.charged ?? {}));
  const counters = new Map<string, Counter>();
  for (const windows of charged) {
    for (const [entity, window] of Object.entries(windows))
    // Postgres accepts no NUL, not even as a parameter.
    {
      if (!entity.includes("\0")) {
        counters.set(`${entity}|${window}`, { entity, window });
      }
    }
  }
  return [...counters.values()];
}
