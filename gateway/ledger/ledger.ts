import { setImmediate as nextTurn } from "node:timers/promises";
import type { Logger } from "pino";
import {
  isBehind,
  LedgerBehind,
  readMark,
  type MarkStep,
} from "../database/journal-marks.ts";
import { recordRows, type Recorded } from "../database/ledger.ts";
import { DatabaseUnavailable, type Pool } from "../database/pool.ts";
import type { Counter } from "./payers.ts";
import type {
  Journal,
  JournalBatch,
  JournalMark,
  JournalRow,
} from "../journal/journal-types.ts";
import { LedgerTotals } from "./ledger-totals.ts";
import type { LimitStore } from "../limits/limits.ts";
import { nanosFromCost } from "../pricing/money.ts";
import { textOf } from "../../core/failure.ts";
import { createMutex } from "../../core/mutex.ts";
import type { PendingSums } from "./pending.ts";
import type { Intent, Outcome } from "./records.ts";
import { recordAll } from "./refused-rows.ts";
import { restoreLedger } from "./restore.ts";
import { spendRow, type SpendRow } from "./rows.ts";

const BATCH_ROWS = 1_000;
const ROWS_AT_ONCE = 50;
const DRAIN_EVERY_MS = 200;
const RETRY_AFTER_MS = 1_000;
/** Without calls, the database is asked this often whether it lacks rows. */
const VERIFY_EVERY_MS = 5_000;

interface LedgerOptions {
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
export class Ledger {
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
  #restored = 0;
  /** When the database was last seen to have all rows. */
  #verifiedAt = -Infinity;
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

  /** Rows that the database had lost and that were written again. */
  restored(): number {
    return this.#restored;
  }

  /** False while the database does not take the journal's rows, as when it is read-only or its disk is full. */
  writable(): boolean {
    return !this.#away;
  }

  /** Writes the journal's rows of previous processes to the ledger, then keeps draining. */
  async start(): Promise<void> {
    await this.#drain();
    this.#recovering = false;
    this.#timer = setTimeout(() => this.#tick(), DRAIN_EVERY_MS);
  }

  /** Writes everything in the journal to the database; throws if that fails. */
  async flush(): Promise<void> {
    await this.#running?.catch(() => undefined);
    await this.#drain();
  }

  /** Stops draining after the current batch. */
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
      await this.#alone(() => this.#verify());
    }
    return length;
  }

  async #commitBatch(): Promise<void> {
    if (this.#batch === null) {
      return;
    }
    const { rows: entries, position, mark } = this.#batch;
    this.#uncertain = true;
    const recorded = await this.#recordComplete(entries, {
      instance: this.#journal.instance,
      to: mark,
      reached: this.#journal.acknowledged(),
    });
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

  /** Before that, what the database has lost. */
  async #recordComplete(
    entries: readonly JournalRow<Intent, Outcome>[],
    mark: MarkStep,
  ): Promise<Recorded> {
    try {
      return await this.#record(entries, mark);
    } catch (error) {
      if (!(error instanceof LedgerBehind)) {
        throw error;
      }
      await this.#restore(error.mark);
      return this.#record(entries, mark);
    } finally {
      this.#verifiedAt = performance.now();
    }
  }

  async #record(
    entries: readonly JournalRow<Intent, Outcome>[],
    mark: MarkStep | null,
  ): Promise<Recorded> {
    const counters = countersOf(entries);
    return recordAll(
      await this.#rowsOf(entries),
      (rows, ends) =>
        recordRows(
          this.#options.pool,
          rows,
          counters,
          this.#options.proxyDuration,
          this.#timeZone,
          ends ? mark : null,
        ),
      this.#log,
    );
  }

  /** Restores what the database has lost, which a gateway without calls would not notice. */
  async #verify(): Promise<void> {
    const reached = this.#journal.acknowledged();
    const isDue = performance.now() - this.#verifiedAt > VERIFY_EVERY_MS;
    if (reached === null || (!isDue && !this.#away)) {
      return;
    }
    const mark = await readMark(this.#options.pool, this.#journal.instance);
    if (isBehind(mark, reached)) {
      await this.#restore(mark);
    }
    this.#verifiedAt = performance.now();
  }

  /** No total is read meanwhile: the rest of its rows would be missing. */
  async #restore(since: JournalMark | null): Promise<void> {
    const { pool, limits } = this.#options;
    this.#restored += await restoreLedger({
      pool,
      journal: this.#journal,
      since,
      record: (entries, mark) => this.#record(entries, mark),
      log: this.#log,
    });
    await limits.forgetTotals();
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
                error: reasonOf(error),
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

/** With what Postgres said: it may be available, but read-only. */
function reasonOf(error: unknown): string {
  return error instanceof DatabaseUnavailable
    ? `${error.message} (${textOf(error.cause)})`
    : textOf(error);
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
