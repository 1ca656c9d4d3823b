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
import type { Mutex } from "./mutex.ts";
import type { PendingSums } from "./pending.ts";
import { windowStart } from "./windows.ts";

const CONFIRMED_AT_ONCE = 1_000;
const RELOADED_AT_ONCE = 500;
const NOTHING_SPENT: LastKnown = { total: 0, version: 0 };

/** Brings totals of the ledger to the limit store. */
export interface LedgerTotals {
  /**
   * The totals that the store asked for; while the database is unavailable those that this instance knew last. A window that
   * began since the start and of which none is known holds nothing; for any other unknown total it throws
   * {@link DatabaseUnavailable}.
   */
  load(counters: readonly Counter[]): Promise<void>;
  /** Reads totals that this instance does not know yet, so that their payers are served while the database is unavailable. */
  prepare(counters: readonly Counter[]): Promise<void>;
  /** Reads the totals of payers again whose spend or windows an admin changed; throws {@link DatabaseUnavailable}. */
  reload(entities: readonly string[]): Promise<void>;
  /** What a commit returned. */
  assign(totals: readonly Total[]): Promise<void>;
  /** Replaces the last known totals that were used while the database was unavailable. */
  confirm(): Promise<void>;
}

export interface LedgerTotalsOptions {
  /** For statements that calls wait for. */
  readonly callPool: Pool;
  readonly limits: LimitStore;
  readonly pending: PendingSums;
  readonly log: Logger;
  readonly databaseConnected: () => boolean;
  /** Totals are not read between a commit and its assign. */
  readonly alone: Mutex;
  /** Commits a batch that may be in the ledger and is still pending: its spend would count twice in a total. */
  readonly resolve: () => Promise<void>;
}

export function createLedgerTotals(options: LedgerTotalsOptions): LedgerTotals {
  const { callPool, limits, pending, log, alone } = options;
  /** Counters whose last known total is in use, by name. */
  const unconfirmed = new Map<string, Counter>();
  /** Entities whose totals an admin changed, to be read again. */
  const changed = new Set<string>();
  let reloading: Promise<void> | null = null;
  const startedAt = Date.now();

  async function readTotalsOf(
    counters: readonly Counter[],
  ): Promise<readonly Total[]> {
    try {
      await options.resolve();
    } catch (error) {
      throw new DatabaseUnavailable(error);
    }
    return readTotals(callPool, counters);
  }

  /** Reads totals while no drain commits, but does not wait long for a database that does not answer. */
  function readAlone(
    counters: readonly Counter[],
    use: (totals: readonly Total[]) => Promise<void> | void,
  ): Promise<void> {
    const read = alone(async () => use(await readTotalsOf(counters)));
    // A drain that waits for Postgres must not make a call wait with it.
    return within(CALL_DEADLINE_MS, read);
  }

  async function load(counters: readonly Counter[]): Promise<void> {
    if (options.databaseConnected() || !counters.every(lastKnown)) {
      try {
        return await readAlone(counters, assign);
      } catch (error) {
        const isKnown = counters.every(lastKnown);
        if (!(error instanceof DatabaseUnavailable) || !isKnown) {
          throw error;
        }
      }
    }
    await assignLastKnown(counters);
  }

  /** null: this instance never knew a total of a window that may hold spend. */
  function lastKnown({ entity, window }: Counter): LastKnown | null {
    const began = windowStart(window) > startedAt;
    return limits.lastKnown(entity, window) ?? (began ? NOTHING_SPENT : null);
  }

  async function assignLastKnown(counters: readonly Counter[]): Promise<void> {
    if (unconfirmed.size === 0) {
      log.warn("the ledger cannot be read; budgets use the last known totals");
    }
    for (const counter of counters) {
      unconfirmed.set(`${counter.entity}|${counter.window}`, counter);
    }
    const parts = counters.map((counter) => {
      const { entity, window } = counter;
      const known = lastKnown(counter) ?? NOTHING_SPENT;
      return { entity, window, ...known, pending: pending.of(entity, window) };
    });
    await limits.assign(parts, "last known");
  }

  async function assign(totals: readonly Total[]): Promise<void> {
    if (totals.length > 0) {
      await limits.assign(partsOf(totals));
    }
  }

  /** All that changed meanwhile at once: an import changes thousands, and calls wait for their turn behind each reading. */
  async function reloadChanged(): Promise<void> {
    try {
      while (changed.size > 0) {
        await alone(async () => {
          const entities = [...changed].slice(0, RELOADED_AT_ONCE);
          for (const entity of entities) {
            changed.delete(entity);
          }
          const counters = await openCounters(callPool, entities);
          await assign(await readTotalsOf(counters));
        });
      }
    } finally {
      // After a failure they are read again when the connection is back.
      changed.clear();
      reloading = null;
    }
  }

  function partsOf(totals: readonly Total[]): readonly CounterParts[] {
    return totals.map(({ entity, window, spend, version }) => ({
      entity,
      window,
      total: nanosFromCost(spend),
      version,
      pending: pending.of(entity, window),
    }));
  }

  return {
    load,
    assign,
    async prepare(counters) {
      const unknown = counters.filter(
        ({ entity, window }) => limits.lastKnown(entity, window) === null,
      );
      if (unknown.length > 0) {
        await readAlone(unknown, (totals) => limits.remember(partsOf(totals)));
      }
    },
    async reload(entities) {
      for (const entity of entities) {
        changed.add(entity);
      }
      if (changed.size > 0) {
        await (reloading ??= reloadChanged());
      }
    },
    async confirm() {
      const used = [...unconfirmed].slice(0, CONFIRMED_AT_ONCE);
      if (used.length === 0) {
        return;
      }
      await readAlone(
        used.map(([, counter]) => counter),
        assign,
      );
      for (const [name] of used) {
        unconfirmed.delete(name);
      }
    },
  };
}
