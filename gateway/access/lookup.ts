import { LRUCache } from "lru-cache";
import { DatabaseUnavailable } from "../database/pool.ts";

export interface Lookup<Value> {
  /** The value now known of an id; throws {@link DatabaseUnavailable} for one that was never seen while the database is away. */
  find(id: string): Promise<Value>;
  /** What is known without asking the database; undefined when it has to be asked. */
  peek(id: string): Value | undefined;
  /** What was last known, however long ago and whatever changed since; undefined: it was never asked for. */
  recall(id: string): Value | undefined;
  /** Entries for which `concerns` holds are asked for again at their next use. */
  invalidate(concerns: (value: Value, id: string) => boolean): void;
}

interface Entry<Value> {
  readonly value: Value;
  readonly checkedAt: number;
  stale: boolean;
}

/** An entry is refreshed behind the caller's back after this time, in case a change was not heard of. */
const REFRESH_AFTER_MS = 60_000;
/** While the database is away, known values are served at once and it is asked again only this often. */
const RETRY_AFTER_MS = 1_000;
const MAX_ENTRIES = 50_000;
/** Ids without a row have a space of their own: random keys must not evict known ones. */
const MAX_ABSENT = 10_000;

/**
 * Rows looked up once and kept in process, and ids that have none (null). Changes are heard of through Postgres LISTEN (`invalidate`).
 * While the database is away a known value is served until `keepMs` after it was last checked.
 */
export function createLookup<Value>(options: {
  readonly load: (id: string) => Promise<Value>;
  readonly keepMs: number;
  readonly now?: () => number;
}): Lookup<Value> {
  const { load, keepMs, now = Date.now } = options;
  const refreshAfterMs = Math.min(REFRESH_AFTER_MS, keepMs);
  const entries = cacheOf<Entry<Value>>(MAX_ENTRIES);
  const absent = cacheOf<Entry<Value>>(MAX_ABSENT);
  const loading = new Map<string, Promise<Value>>();
  let away = false;
  let retryAt = 0;
  let invalidations = 0;

  function isFresh(entry: Entry<Value>, at: number): boolean {
    return !entry.stale && at - entry.checkedAt < refreshAfterMs;
  }

  function entryOf(id: string): Entry<Value> | undefined {
    return entries.get(id) ?? absent.get(id);
  }

  function keep(id: string, value: Value, stale: boolean): void {
    const [space, other] =
      value === null ? [absent, entries] : [entries, absent];
    other.delete(id);
    space.set(id, { value, checkedAt: now(), stale });
  }

  function ask(id: string): Promise<Value> {
    const running = loading.get(id);
    if (running !== undefined) {
      return running;
    }
    const heardOf = invalidations;
    const asked = load(id)
      .then((value) => {
        away = false;
        // A change announced while the answer was on its way may not be in it.
        keep(id, value, invalidations !== heardOf);
        return value;
      })
      .catch((error: unknown) => {
        if (error instanceof DatabaseUnavailable) {
          away = true;
          retryAt = now() + RETRY_AFTER_MS;
        }
        throw error;
      })
      .finally(() => loading.delete(id));
    loading.set(id, asked);
    return asked;
  }

  return {
    peek(id) {
      const entry = entryOf(id);
      return entry !== undefined && isFresh(entry, now())
        ? entry.value
        : undefined;
    },
    recall: (id) => entryOf(id)?.value,
    async find(id) {
      const at = now();
      const entry = entryOf(id);
      if (entry === undefined) {
        return ask(id);
      }
      if (isFresh(entry, at)) {
        return entry.value;
      }
      const keepable = at - entry.checkedAt < keepMs;
      if (keepable && (away || !entry.stale)) {
        if (!away || at >= retryAt) {
          ask(id).catch(() => undefined);
        }
        return entry.value;
      }
      try {
        return await ask(id);
      } catch (error) {
        if (error instanceof DatabaseUnavailable && keepable) {
          return entry.value;
        }
        throw error;
      }
    },
    invalidate(concerns) {
      for (const space of [entries, absent]) {
        for (const [id, entry] of space) {
          if (concerns(entry.value, id)) {
            entry.stale = true;
          }
        }
      }
      invalidations++;
      loading.clear();
      // Only a database that is there announces changes.
      away = false;
    },
  };
}

/** Limited by `maxSize` because `max` reserves the memory for all entries at once. */
function cacheOf<Value extends object>(limit: number): LRUCache<string, Value> {
  return new LRUCache({ maxSize: limit, sizeCalculation: () => 1 });
}
