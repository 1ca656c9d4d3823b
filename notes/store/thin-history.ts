import { setTimeout as sleep } from "node:timers/promises";
import { HOUR_MS } from "../../core/duration.ts";
import { historyFrom } from "./history.ts";
import { isKept } from "./kept-instants.ts";
import { exclusively, inReserve, type Store } from "./store.ts";

/** Versions checked, and dropped, per step; writes and feeds run between the steps. */
const VERSIONS_PER_STEP = 500;
const PAUSE_MS = 2;
/** Between two runs. */
export const INTERVAL_MS = HOUR_MS;
/** Two runs that confirm each other's clock are at least this far apart. */
const MIN_APART_MS = INTERVAL_MS / 2;

interface PastVersion {
  readonly row: number;
  readonly size: number;
  readonly since: number;
  readonly until: number;
}

/**
 * Drops the versions that no kept state needs, as of the run before: those that two runs found old. A clock that is a year ahead
 * for one run must not drop the history. Then the oldest until the history fits into its limit.
 */
export async function thinHistory(store: Store): Promise<void> {
  const now = Date.now();
  const before = lastRun(store);
  if (Math.abs(now - before) >= MIN_APART_MS) {
    await dropUnneeded(store, Math.min(before, now));
    await recordRun(store, now);
  }
  await fitLimit(store);
}

/** When the last run thinned, in milliseconds since 1970; the start of the history before the first one. */
function lastRun(store: Store): number {
  const row = store.read.property.get("thinned_at");
  return Number(row?.value ?? historyFrom(store));
}

/** Not a change of the vault, for which others would read it. */
async function recordRun(store: Store, now: number): Promise<void> {
  await exclusively(store, async () => {
    if (!store.readOnly && !store.closing) {
      store.write
        .other("INSERT OR REPLACE INTO properties VALUES ('thinned_at', ?)")
        .run(String(now));
    }
  });
}

async function dropUnneeded(store: Store, now: number): Promise<void> {
  let last = 0;
  for (;;) {
    if (store.closing) {
      return;
    }
    const page = store.read
      .other(
        `SELECT rowid AS row, size, since, until FROM history WHERE rowid > ? AND until IS NOT NULL ORDER BY rowid LIMIT ${VERSIONS_PER_STEP}`,
      )
      .all(last) as unknown as PastVersion[];
    const from = historyFrom(store);
    const stale = page.filter(
      ({ since, until }) => !isKept(Math.max(since, from), until, now),
    );
    if (stale.length > 0) {
      await drop(store, stale);
    }
    if (page.length < VERSIONS_PER_STEP) {
      break;
    }
    last = page.at(-1)!.row;
    await sleep(PAUSE_MS);
  }
}

async function fitLimit(store: Store): Promise<void> {
  for (;;) {
    if (store.closing) {
      return;
    }
    const { bytes } = store.read
      .other(
        "SELECT COALESCE(SUM(size), 0) AS bytes FROM history WHERE until IS NOT NULL",
      )
      .get() as { bytes: number };
    if (bytes <= store.historyMaxBytes) {
      return;
    }
    const oldest = store.read
      .other(
        `SELECT rowid AS row, size, since, until FROM history WHERE until IS NOT NULL ORDER BY until LIMIT ${VERSIONS_PER_STEP}`,
      )
      .all() as unknown as PastVersion[];
    let excess = bytes - store.historyMaxBytes;
    const dropped: PastVersion[] = [];
    for (const version of oldest) {
      if (excess <= 0) {
        break;
      }
      dropped.push(version);
      excess -= version.size;
    }
    // From the end of the last one on, every state is complete.
    await drop(store, dropped, dropped.at(-1)!.until);
    await sleep(PAUSE_MS);
  }
}

async function drop(
  store: Store,
  versions: readonly PastVersion[],
  from?: number,
): Promise<void> {
  await inReserve(store, () => {
    for (const { row, until } of versions) {
      // A version that is current again is kept.
      store.write
        .other("DELETE FROM history WHERE rowid = ? AND until = ?")
        .run(row, until);
    }
    if (from !== undefined) {
      store.write
        .other(
          "UPDATE properties SET value = MAX(CAST(value AS INTEGER), ?) WHERE name = 'history_from'",
        )
        .run(from);
    }
  });
}
