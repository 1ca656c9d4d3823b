import { setTimeout as sleep } from "node:timers/promises";
import { isWithin } from "../../core/clock-jumps.ts";
import { Failure } from "../../core/failure.ts";
import { sizeWords } from "../../core/size.ts";
import { countConflicts } from "./conflicts.ts";
import type { Database } from "./database.ts";
import type { NotesState } from "./notes-state.ts";
import { NoSuchVault } from "./vault-names.ts";

interface CompactionLimits {
  /** Minimum reclaimable space: bytes, and percent of the file. */
  readonly minBytes: number;
  readonly minPercent: number;
  /** Compaction removes the ancestors that automatic merges need, so it is skipped with more open conflicts. */
  readonly maxConflicts: number;
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

export interface CompactionOptions {
  readonly database: Database;
  readonly state: NotesState;
  readonly limits: CompactionLimits;
  /** Free bytes on the store's file system. */
  readonly freeBytes: () => number;
  /** Requested by a person: runs even if little space is reclaimable or the last compaction was recent. */
  readonly onDemand: boolean;
  /** Runs despite open conflicts. */
  readonly force: boolean;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/** A database from this size on is large. */
export const LARGE_BYTES = 1_000_000_000;

const POLL_INTERVAL_MS = 250;

/** Compacts a vault unless a condition prevents it, and waits for completion. Never removes a leaf. */
export async function compactVault(
  options: CompactionOptions,
): Promise<Compaction> {
  const { database, state, signal } = options;
  const vault = database.name;
  const info = await database.info({ signal });
  if (info === undefined) {
    throw new NoSuchVault(vault);
  }
  const { file, active } = info.sizes;
  const why = info.compact_running
    ? "compaction is already running"
    : await obstacleTo(options, file, active);
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
  state.change(vault, { compactedAt: options.now() });
  const after = await untilDone(database, signal);
  return {
    vault,
    status: "done",
    beforeBytes: file,
    afterBytes: after.file,
    activeBytes: after.active,
  };
}

async function obstacleTo(
  {
    database,
    state,
    limits,
    freeBytes,
    onDemand,
    force,
    now,
    signal,
  }: CompactionOptions,
  file: number,
  active: number,
): Promise<string | undefined> {
  const { compactedAt, space } = state.vault(database.name);
  const reclaimable = Math.max(0, file - active);
  const minBytes = Math.max(limits.minBytes, (file * limits.minPercent) / 100);
  if (
    !onDemand &&
    compactedAt !== null &&
    isWithin(compactedAt, limits.restFor, now())
  ) {
    return `last compacted at ${new Date(compactedAt).toISOString()}`;
  }
  if (!onDemand && reclaimable < minBytes) {
    return active > LARGE_BYTES
      ? `the notes themselves take ${sizeWords(active)}, which compaction cannot reduce: split the vault, exclude large files (exclude patterns), or rebuild it from a device`
      : `only ${sizeWords(reclaimable)} can be reclaimed`;
  }
  const free = freeBytes();
  // Only the embedded store reports its use of space; it compacts in place, within space that it reserves.
  if (space === null && free < active) {
    return `compaction needs ${sizeWords(active)} of free disk space while it runs, and ${sizeWords(free)} are available: free some space`;
  }
  const most = limits.maxConflicts;
  const conflicts = await countConflicts(database, most + 1, signal);
  if (!force && conflicts > most) {
    return `more than ${most} open conflicts, which could no longer be merged automatically afterwards: resolve them first (\`hearth notes conflicts ${database.name}\`)`;
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
        `vault ${database.name} was removed during its compaction.`,
      );
    }
    if (!info.compact_running) {
      return info.sizes;
    }
    await sleep(POLL_INTERVAL_MS, undefined, { signal });
  }
}
