import type { Database } from "./database.ts";

/** Checks per idle time: a database is closed at most a quarter of it late. */
const CHECKS = 4;

/** Closes unused databases, since each has a thread and caches. */
export interface IdleWatch {
  /** Records a use of the database. */
  readonly used: (database: Database) => void;
  readonly stop: () => void;
}

interface IdleOptions {
  readonly idleMs: number;
  readonly opened: () => Iterable<Database>;
  readonly close: (database: Database) => void;
}

export function watchIdle({ idleMs, opened, close }: IdleOptions): IdleWatch {
  const usedAt = new WeakMap<Database, number>();
  const check = (): void => {
    const now = performance.now();
    for (const database of opened()) {
      if (!database.isIdle()) {
        usedAt.set(database, now);
      } else if (now - (usedAt.get(database) ?? now) >= idleMs) {
        close(database);
      }
    }
  };
  const timer = setInterval(check, idleMs / CHECKS).unref();
  return {
    used: (database) => void usedAt.set(database, performance.now()),
    stop: () => clearInterval(timer),
  };
}
