import type { Logger } from "pino";
import {
  CALL_DEADLINE_MS,
  DatabaseUnavailable,
  within,
  type Pool,
} from "../database/pool.ts";
import { openCounters, readTotals, type Total } from "../database/totals.ts";
import { type Counter } from "./payers.ts";
import type { CounterParts, LastKnown, LimitStore } from "../limits/limits.ts";
import { nanosFromCost } from "../pricing/money.ts";
import type { Mutex } from "../../core/mutex.ts";
import type { PendingSums } from "./pending.ts";
import { windowStart } from "./budget-windows.ts";

const CONFIRMED_AT_ONCE = 1_000;
const RELOADED_AT_ONCE = 500;
const NOTHING_SPENT: LastKnown = { total: 0, version: 0 };

interface LedgerTotalsOptions {
  /** For statements that calls wait for. */
  readonly callPool: Pool;
  readonly limits: LimitStore;
  readonly pending: PendingSums;
  readonly log: Logger;
  readonly databaseConnected: () => boolean;
  /** Totals are not read between a commit and its assign. */
  readonly alone: Mutex;
  /** Commits a batch that is pending and may already be in the ledger: its spend would count twice in a total. */
  readonly resolve: () => Promise<void>;
}

/** Brings totals of the ledger to the limit store. */
export class LedgerTotals {
  readonly #options: LedgerTotalsOptions;
  readonly #callPool: Pool;
  readonly #limits: LimitStore;
  readonly #pending: PendingSums;
  readonly #log: Logger;
  readonly #alone: Mutex;
  /** Counters whose last known total is in use, by name. */
  readonly #unconfirmed = new Map<string, Counter>();
  /** Entities whose totals an admin changed, to be read again. */
  readonly #changed = new Set<string>();
  #reloading: Promise<void> | null = null;
  readonly #startedAt = Date.now();

  constructor(options: LedgerTotalsOptions) {
    this.#options = options;
    this.#callPool = options.callPool;
    this.#limits = options.limits;
    this.#pending = options.pending;
    this.#log = options.log;
    this.#alone = options.alone;
  }

  /**
   * The requested totals; while the database is unavailable the last known ones of this instance. A window that started
   * after this process and has no known total is empty; any other unknown total throws {@link DatabaseUnavailable}.
   */
  async load(counters: readonly Counter[]): Promise<void> {
    if (this.#options.databaseConnected() || !this.#isKnown(counters)) {
      try {
        return await this.#readAlone(counters, (totals) => this.assign(totals));
      } catch (error) {
        if (
          !(error instanceof DatabaseUnavailable) ||
          !this.#isKnown(counters)
        ) {
          throw error;
        }
      }
    }
    await this.#assignLastKnown(counters);
  }

  /** What a commit returned. */
  async assign(totals: readonly Total[]): Promise<void> {
    if (totals.length > 0) {
      await this.#limits.assign(this.#partsOf(totals));
    }
  }

  /** Reads totals that are still unknown here, so that their payers are served while the database is unavailable. */
  async prepare(counters: readonly Counter[]): Promise<void> {
    const unknown = counters.filter(
      ({ entity, window }) => this.#limits.lastKnown(entity, window) === null,
    );
    if (unknown.length > 0) {
      await this.#readAlone(unknown, (totals) =>
        this.#limits.remember(this.#partsOf(totals)),
      );
    }
  }

  /** Reads the totals of payers again whose spend or windows an admin changed; throws {@link DatabaseUnavailable}. */
  async reload(entities: readonly string[]): Promise<void> {
    for (const entity of entities) {
      this.#changed.add(entity);
    }
    if (this.#changed.size > 0) {
      await (this.#reloading ??= this.#reloadChanged());
    }
  }

  /** Replaces the last known totals that were used while the database was unavailable. */
  async confirm(): Promise<void> {
    const used = [...this.#unconfirmed].slice(0, CONFIRMED_AT_ONCE);
    if (used.length === 0) {
      return;
    }
    await this.#readAlone(
      used.map(([, counter]) => counter),
      (totals) => this.assign(totals),
    );
    for (const [name] of used) {
      this.#unconfirmed.delete(name);
    }
  }

  async #readTotalsOf(counters: readonly Counter[]): Promise<readonly Total[]> {
    try {
      await this.#options.resolve();
    } catch (error) {
      throw new DatabaseUnavailable(error);
    }
    return readTotals(this.#callPool, counters);
  }

  /** Reads totals while no drain commits, but does not wait long for a database that does not answer. */
  #readAlone(
    counters: readonly Counter[],
    use: (totals: readonly Total[]) => Promise<void> | void,
  ): Promise<void> {
    const read = this.#alone(async () =>
      use(await this.#readTotalsOf(counters)),
    );
    // A drain that waits for Postgres must not make a call wait with it.
    return within(CALL_DEADLINE_MS, read);
  }

  #isKnown(counters: readonly Counter[]): boolean {
    return counters.every((counter) => this.#lastKnown(counter) !== null);
  }

  /** null: this instance never knew a total of a window that may hold spend. */
  #lastKnown({ entity, window }: Counter): LastKnown | null {
    const isNew = windowStart(window) > this.#startedAt;
    return (
      this.#limits.lastKnown(entity, window) ?? (isNew ? NOTHING_SPENT : null)
    );
  }

  async #assignLastKnown(counters: readonly Counter[]): Promise<void> {
    if (this.#unconfirmed.size === 0) {
      this.#log.warn("ledger unavailable; budgets use the last known totals");
    }
    for (const counter of counters) {
      this.#unconfirmed.set(`${counter.entity}|${counter.window}`, counter);
    }
    const parts = counters.map((counter) => {
      const { entity, window } = counter;
      const known = this.#lastKnown(counter) ?? NOTHING_SPENT;
      return {
        entity,
        window,
        ...known,
        pending: this.#pending.of(entity, window),
      };
    });
    await this.#limits.assign(parts, "last known");
  }

  /** Everything that changed meanwhile is read together: an import changes thousands, and calls wait for each reading. */
  async #reloadChanged(): Promise<void> {
    try {
      while (this.#changed.size > 0) {
        await this.#alone(async () => {
          const entities = [...this.#changed].slice(0, RELOADED_AT_ONCE);
          for (const entity of entities) {
            this.#changed.delete(entity);
          }
          const counters = await openCounters(this.#callPool, entities);
          await this.assign(await this.#readTotalsOf(counters));
        });
      }
    } finally {
      // After a failure they are read again when the connection is back.
      this.#changed.clear();
      this.#reloading = null;
    }
  }

  #partsOf(totals: readonly Total[]): readonly CounterParts[] {
    return totals.map(({ entity, window, spend, version }) => ({
      entity,
      window,
      total: nanosFromCost(spend),
      version,
      pending: this.#pending.of(entity, window),
    }));
  }
}
