import { Failure, sentencesOf } from "../../core/failure.ts";

/** What was read, and when. */
export interface Kept<T> {
  readonly value: T;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Why it could not be read anew the last time; null when it could. */
  readonly trouble: string | null;
}

export interface KeepLimits {
  /** Until then it is shown as it is. */
  readonly freshMs: number;
  /** Until then it is shown while it is read anew; later one waits for that. */
  readonly keepMs: number;
}

/** It is being read and takes longer than one waits for a page. */
export class StillReading extends Failure {}

export type Keeping = <T>(
  key: string,
  limits: KeepLimits,
  read: () => Promise<T>,
) => Promise<Kept<T>>;

interface Entry {
  kept: { readonly value: unknown; readonly at: number } | undefined;
  reading: Promise<void> | undefined;
  trouble: string | null;
  failedAt: number;
}

const PATIENCE_MS = 2000;
/** What has just failed is not tried again at once: a page must not wait each time. */
const REST_MS = 3000;
const MOST_ENTRIES = 24;

/**
 * Keeps what is slow to read, so that pages answer at once. One reading at a time for each key. Throws a Failure when nothing
 * is known yet: StillReading when that may change soon.
 */
export function openKeeping(now: () => number): Keeping {
  const entries = new Map<string, Entry>();

  function entryOf(key: string): Entry {
    const entry = entries.get(key) ?? {
      kept: undefined,
      reading: undefined,
      trouble: null,
      failedAt: 0,
    };
    // The one asked for last stands last; the first is forgotten first.
    entries.delete(key);
    entries.set(key, entry);
    for (const [oldest] of entries) {
      if (entries.size <= MOST_ENTRIES) {
        break;
      }
      entries.delete(oldest);
    }
    return entry;
  }

  return async <T>(
    key: string,
    { freshMs, keepMs }: KeepLimits,
    read: () => Promise<T>,
  ): Promise<Kept<T>> => {
    const entry = entryOf(key);
    const age = () => now() - (entry.kept?.at ?? -Infinity);
    if (age() >= freshMs && now() - entry.failedAt >= REST_MS) {
      entry.reading ??= readInto(entry, read, now).finally(() => {
        entry.reading = undefined;
      });
    }
    if (age() >= keepMs) {
      await waitAtMost(entry.reading);
    }
    if (entry.kept !== undefined) {
      return {
        value: entry.kept.value as T,
        at: entry.kept.at,
        trouble: entry.trouble,
      };
    }
    throw entry.trouble === null
      ? new StillReading("the ledger is still being added up.")
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
    entry.kept = { value: await read(), at };
    entry.trouble = null;
    entry.failedAt = 0;
  } catch (error) {
    // What this one is made of is on its way.
    if (error instanceof StillReading) {
      return;
    }
    entry.trouble = sentencesOf(error).join(" ");
    entry.failedAt = now();
  }
}

async function waitAtMost(work: Promise<void> | undefined): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, PATIENCE_MS);
  await Promise.race([work, late.promise]);
  clearTimeout(timer);
}
