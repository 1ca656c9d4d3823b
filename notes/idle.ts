import { totalmem } from "node:os";
import type { Database } from "./database.ts";

/** Checks per idle time: a database is closed at most a quarter of it late. */
const CHECKS = 4;

/** Memory of an open database: its thread with modules and caches. */
const DATABASE_BYTES = 26_000_000;
/** Unused databases that stay open take a tenth of the memory of the machine or the container. */
const KEPT = Math.max(
  4,
  Math.floor(
    Math.min(totalmem(), process.constrainedMemory() || Infinity) /
      10 /
      DATABASE_BYTES,
  ),
);
/** Within it, a request that has opened a database has reached it. */
const MIN_UNUSED_MS = 1000;

/** An open database is maintained after a minute (`store/maintenance.ts`). */
const MAINTAINED_AFTER_MS = 90_000;

/** Closes unused databases, since each has a thread and caches. */
export interface IdleWatch {
  /** Records a use of the database. Others are closed if too many are unused. */
  readonly used: (database: Database) => void;
  readonly stop: () => void;
}

interface IdleOptions {
  readonly idleMs: number;
  /**
   * How many unused databases stay open during `idleMs`, while the supervisor or a backup reads all in turn: those that were
   * maintained the longest ago, then the last ones.
   */
  readonly keep?: number;
  readonly opened: () => Iterable<Database>;
  readonly close: (database: Database) => void;
}

export function watchIdle(options: IdleOptions): IdleWatch {
  const { idleMs, keep = KEPT, opened, close } = options;
  const usedAt = new WeakMap<Database, number>();
  const openedAt = new WeakMap<Database, number>();
  const maintainedAt = new Map<string, number>();
  const check = (): void => {
    const now = performance.now();
    const unusedFor = (database: Database) =>
      now - (usedAt.get(database) ?? now);
    const maintained = ({ name }: Database) => maintainedAt.get(name) ?? 0;
    const unused: Database[] = [];
    for (const database of opened()) {
      if (now - (openedAt.get(database) ?? now) >= MAINTAINED_AFTER_MS) {
        maintainedAt.set(database.name, now);
      }
      if (database.isIdle()) {
        unused.push(database);
      } else {
        usedAt.set(database, now);
      }
    }
    unused
      .toSorted(
        (a, b) => maintained(a) - maintained(b) || unusedFor(a) - unusedFor(b),
      )
      .filter(
        (database, index) =>
          unusedFor(database) >= (index < keep ? idleMs : MIN_UNUSED_MS),
      )
      .forEach(close);
  };
  const timer = setInterval(check, idleMs / CHECKS).unref();
  return {
    used: (database) => {
      const now = performance.now();
      usedAt.set(database, now);
      if (!openedAt.has(database)) {
        openedAt.set(database, now);
        check();
      }
    },
    stop: () => clearInterval(timer),
  };
}
