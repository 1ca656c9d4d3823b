import { setTimeout as wait } from "node:timers/promises";
import { isWithin } from "../moments.ts";
import { Failure } from "../../core/failure.ts";
import { countConflicts } from "./conflicts.ts";
import type { Database } from "./database.ts";
import type { NotesState } from "./notes-state.ts";
import { NoSuchVault } from "./vault-names.ts";

export interface CompactionLimits {
  /** Less to be had is not worth the work: bytes, and percent of the file. */
  readonly leastBytes: number;
  readonly leastPercent: number;
  /** Compaction removes the ancestors that automatic merges need: with more open conflicts it waits. */
  readonly mostConflicts: number;
  /** Milliseconds between two compactions of a vault. */
  readonly restFor: number;
}

export type Compaction =
  | {
      readonly vault: string;
      readonly status: "done";
      readonly beforeBytes: number;
      readonly afterBytes: number;
      readonly activeBytes: number;
    }
  | {
      readonly vault: string;
      readonly status: "skipped";
      readonly why: string;
      readonly fileBytes: number;
      readonly activeBytes: number;
    };

export interface CompactionAsk {
  readonly database: Database;
  readonly state: NotesState;
  readonly limits: CompactionLimits;
  /** Bytes that are free where the store keeps its files. */
  readonly freeBytes: () => number;
  /** A person asked for it: it is done even when there is little to gain, or soon after the last. */
  readonly asked: boolean;
  /** It is done in spite of open conflicts. */
  readonly force: boolean;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/** From here on a database is large. */
export const LARGE_BYTES = 1_000_000_000;

const LOOK_EVERY_MS = 250;

/** Compacts a vault unless a gate holds; waits until it is done. A leaf is never lost by it. */
export async function compactVault(ask: CompactionAsk): Promise<Compaction> {
  const { database, state, signal } = ask;
  const vault = database.name;
  const info = await database.info({ signal });
  if (info === undefined) {
    throw new NoSuchVault(vault);
  }
  const { file, active } = info.sizes;
  const why = info.compact_running
    ? "it is being compacted already"
    : await gateThatHolds(ask, file, active);
  if (why !== undefined) {
    return {
      vault,
      status: "skipped",
      why,
      fileBytes: file,
      activeBytes: active,
    };
  }
  await database.compact();
  state.change(vault, { compactedAt: ask.now() });
  const after = await untilDone(database, signal);
  return {
    vault,
    status: "done",
    beforeBytes: file,
    afterBytes: after.file,
    activeBytes: after.active,
  };
}

async function gateThatHolds(
  {
    database,
    state,
    limits,
    freeBytes,
    asked,
    force,
    now,
    signal,
  }: CompactionAsk,
  file: number,
  active: number,
): Promise<string | undefined> {
  const { compactedAt, space } = state.vault(database.name);
  const reclaimable = Math.max(0, file - active);
  const least = Math.max(limits.leastBytes, (file * limits.leastPercent) / 100);
  if (
    !asked &&
    compactedAt !== null &&
    isWithin(compactedAt, limits.restFor, now())
  ) {
    return `it was compacted at ${new Date(compactedAt).toISOString()}`;
  }
  if (!asked && reclaimable < least) {
    return active > LARGE_BYTES
      ? `its notes themselves take ${inMegabytes(active)}, which compaction cannot shrink: split the vault, leave large files out (exclude patterns), or let a device rebuild it`
      : `only ${inMegabytes(reclaimable)} could be had back`;
  }
  const free = freeBytes();
  // Only Hearth's own store says what takes up the space; it compacts in place, in room that it reserves.
  if (space === null && free < active) {
    return `it needs ${inMegabytes(active)} of free disk for the time it runs, and ${inMegabytes(free)} are left: free some`;
  }
  const most = limits.mostConflicts;
  const conflicts = await countConflicts(database, most + 1, signal);
  if (!force && conflicts > most) {
    return `it has more than ${most} open conflicts, which could then no longer be merged by themselves: resolve them first (\`hearth notes conflicts ${database.name}\`)`;
  }
  return undefined;
}

async function untilDone(
  database: Database,
  signal: AbortSignal,
): Promise<{ readonly file: number; readonly active: number }> {
  for (;;) {
    const info = await database.info({ signal });
    if (info === undefined) {
      throw new Failure(
        `vault ${database.name} was removed while it was compacted.`,
      );
    }
    if (!info.compact_running) {
      return info.sizes;
    }
    await wait(LOOK_EVERY_MS, undefined, { signal });
  }
}

/** Bytes in megabytes, for sentences. */
export function inMegabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(bytes < 10_000_000 ? 1 : 0)} MB`;
}
