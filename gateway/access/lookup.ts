import { serialize } from "node:v8";
import { LRUCache } from "lru-cache";
import { isWithin } from "../../core/clock-jumps.ts";
import { MINUTE_MS } from "../../core/duration.ts";
import { DatabaseUnavailable } from "../database/pool.ts";

interface Entry<Value> {
  readonly value: Value;
  readonly checkedAt: number;
  stale: boolean;
}

/** Entries are refreshed in the background after this time, in case a notification was lost. */
const REFRESH_AFTER_MS = MINUTE_MS;
/** While the database is unavailable, known values are served at once and it is queried only this often. */
const RETRY_AFTER_MS = 1_000;
const MAX_ENTRIES = 50_000;
/** A larger one counts as several: the metadata of a key may be long, and a user may have many keys. */
const BYTES_PER_ENTRY = 2_048;
/** Ids without a row have a separate cache: random keys must not evict known ones. */
const MAX_ABSENT = 10_000;

interface LookupOptions<Value> {
  readonly load: (id: string) => Promise<Value>;
  readonly keepMs: number;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/**
 * Rows looked up once and cached in process, and ids without a row (null). Postgres announces changes by NOTIFY (`invalidate`).
 * While the database is unavailable, a known value is served until `keepMs` after its last check.
 */
export class Lookup<Value> {
  readonly #options: LookupOptions<Value>;
  readonly #now: () => number;
  readonly #refreshAfterMs: number;
  readonly #entries = cacheOf<Value>(MAX_ENTRIES);
  readonly #absent = cacheOf<Value>(MAX_ABSENT);
  readonly #loading = new Map<string, Promise<Value>>();
  #isUnavailable = false;
  #failedAt = -Infinity;
  #invalidations = 0;

  constructor(options: LookupOptions<Value>) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#refreshAfterMs = Math.min(REFRESH_AFTER_MS, options.keepMs);
  }

  /** The cached value; undefined if the database must be queried. */
  peek(id: string): Value | undefined {
    const entry = this.#entryOf(id);
    return entry !== undefined && this.#isFresh(entry, this.#now())
      ? entry.value
      : undefined;
  }

  /** The last known value, however old and even if it changed since; undefined if it was never looked up. */
  recall(id: string): Value | undefined {
    return this.#entryOf(id)?.value;
  }

  /** The current value of an id; throws {@link DatabaseUnavailable} for an unknown id while the database is unavailable. */
  async find(id: string): Promise<Value> {
    const at = this.#now();
    const entry = this.#entryOf(id);
    if (entry === undefined) {
      return this.#load(id);
    }
    if (this.#isFresh(entry, at)) {
      return entry.value;
    }
    const isUsable = at - entry.checkedAt < this.#options.keepMs;
    if (isUsable && (this.#isUnavailable || !entry.stale)) {
      if (
        !this.#isUnavailable ||
        !isWithin(this.#failedAt, RETRY_AFTER_MS, at)
      ) {
        this.#load(id).catch(() => undefined);
      }
      return entry.value;
    }
    try {
      return await this.#load(id);
    } catch (error) {
      if (error instanceof DatabaseUnavailable && isUsable) {
        return entry.value;
      }
      throw error;
    }
  }

  /** Entries for which `concerns` is true are looked up again at their next use. */
  invalidate(concerns: (value: Value, id: string) => boolean): void {
    for (const space of [this.#entries, this.#absent]) {
      for (const [id, entry] of space) {
        if (concerns(entry.value, id)) {
          entry.stale = true;
        }
      }
    }
    this.#invalidations++;
    this.#loading.clear();
    // Only an available database announces changes.
    this.#isUnavailable = false;
  }

  #isFresh(entry: Entry<Value>, at: number): boolean {
    return !entry.stale && isWithin(entry.checkedAt, this.#refreshAfterMs, at);
  }

  #entryOf(id: string): Entry<Value> | undefined {
    return this.#entries.get(id) ?? this.#absent.get(id);
  }

  #keep(id: string, value: Value, stale: boolean): void {
    const [space, other] =
      value === null
        ? [this.#absent, this.#entries]
        : [this.#entries, this.#absent];
    other.delete(id);
    space.set(id, { value, checkedAt: this.#now(), stale });
  }

  #load(id: string): Promise<Value> {
    const running = this.#loading.get(id);
    if (running !== undefined) {
      return running;
    }
    const known = this.#invalidations;
    const loading = this.#options
      .load(id)
      .then((value) => {
        this.#isUnavailable = false;
        // A change announced while the query was running may be missing from its result.
        this.#keep(id, value, this.#invalidations !== known);
        return value;
      })
      .catch((error: unknown) => {
        if (error instanceof DatabaseUnavailable) {
          this.#isUnavailable = true;
          this.#failedAt = this.#now();
        }
        throw error;
      })
      .finally(() => this.#loading.delete(id));
    this.#loading.set(id, loading);
    return loading;
  }
}

/** Limited by `maxSize` because `max` reserves the memory for all entries at once. */
function cacheOf<Value>(limit: number): LRUCache<string, Entry<Value>> {
  return new LRUCache({
    maxSize: limit,
    sizeCalculation: ({ value }) =>
      Math.ceil(serialize(value).length / BYTES_PER_ENTRY),
  });
}
