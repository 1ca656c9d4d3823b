import { resolveWithin } from "../../core/resolve-within.ts";
import { Failure, sentencesOf } from "../../core/failure.ts";
import { isWithin } from "../../core/clock-jumps.ts";

/** A cached value with its time. */
export interface Cached<T> {
  readonly value: T;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Why the last refresh failed; null if it succeeded. */
  readonly trouble: string | null;
}

export interface CacheLimits {
  /** Served without a refresh until then. */
  readonly freshMs: number;
  /** Served during a refresh until then; later, the refresh is awaited. */
  readonly staleMs: number;
}

/** Reading takes longer than a page waits. */
export class StillReading extends Failure {}

type ReadCache = <T>(
  key: string,
  limits: CacheLimits,
  read: () => Promise<T>,
) => Promise<Cached<T>>;

interface Entry {
  cached: { readonly value: unknown; readonly at: number } | undefined;
  reading: Promise<void> | undefined;
  trouble: string | null;
  failedAt: number;
}

const PATIENCE_MS = 2000;
/** Delay after a failure, so that not every page waits. */
const REST_MS = 3000;
const MAX_ENTRIES = 24;

/**
 * Caches slow reads, so that pages answer at once, with one read at a time per key. Throws a Failure if there is no value yet:
 * StillReading while it is being read.
 */
export function openReadCache(now: () => number): ReadCache {
  const entries = new Map<string, Entry>();

  function entryOf(key: string): Entry {
    const entry = entries.get(key) ?? {
      cached: undefined,
      reading: undefined,
      trouble: null,
      failedAt: 0,
    };
    // Least recently used entries are evicted first.
    entries.delete(key);
    entries.set(key, entry);
    for (const [oldest] of entries) {
      if (entries.size <= MAX_ENTRIES) {
        break;
      }
      entries.delete(oldest);
    }
    return entry;
  }

  return async <T>(
    key: string,
    { freshMs, staleMs }: CacheLimits,
    read: () => Promise<T>,
  ): Promise<Cached<T>> => {
    const entry = entryOf(key);
    const age = () => Math.abs(now() - (entry.cached?.at ?? -Infinity));
    if (age() >= freshMs && !isWithin(entry.failedAt, REST_MS, now())) {
      entry.reading ??= readInto(entry, read, now).finally(() => {
        entry.reading = undefined;
      });
    }
    if (age() >= staleMs && entry.reading !== undefined) {
      await resolveWithin(entry.reading, PATIENCE_MS);
    }
    if (entry.cached !== undefined) {
      return {
        value: entry.cached.value as T,
        at: entry.cached.at,
        trouble: entry.trouble,
      };
    }
    throw entry.trouble === null
      ? new StillReading("the ledger is still being summed up.")
      : new Failure(entry.trouble);
  };
}

async function readInto(
  entry: Entry,
  read: () => Promise<unknown>,
  now: () => number,
): Promise<void> {
  const at = now();
  try {
    entry.cached = { value: await read(), at };
    entry.trouble = null;
    entry.failedAt = 0;
  } catch (error) {
    // Its dependencies are being read.
    if (error instanceof StillReading) {
      return;
    }
    entry.trouble = sentencesOf(error).join(" ");
    entry.failedAt = now();
  }
}
