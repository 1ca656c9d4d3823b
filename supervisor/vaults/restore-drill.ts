import { isDeepStrictEqual } from "node:util";
import { verifyFiles } from "../backup/backup-files.ts";
import { needDrillRoom } from "../backup/drill-room.ts";
import { Failure } from "../../core/failure.ts";
import { sum } from "../../core/sum.ts";
import {
  parseDocument,
  readLeaves,
  readNotesManifest,
  type VaultEntry,
} from "./backup-format.ts";
import type { Couch } from "./couch.ts";
import { Database, SCRATCH_PREFIX, type CouchDocument } from "./database.ts";
import { countAll, restoreVault, supportedBy } from "./restore.ts";

interface DrillOptions {
  readonly couch: Couch;
  /** One backup: `backups/notes/<name>`. */
  readonly backup: string;
  /** Prefix of the scratch databases. Drills that may run at the same time need different ones. */
  readonly scratch?: string;
  /** Contains the names of the scratch databases while they exist. */
  readonly busy: Set<string>;
  /** Bytes that are free where the store keeps its files. */
  readonly freeBytes: () => number;
  readonly signal: AbortSignal;
  readonly progress: (text: string, done?: number) => void;
}

export interface DrilledVault {
  readonly vault: string;
  readonly documents: number;
  readonly leaves: number;
  /** Revisions that were compared member by member. */
  readonly compared: number;
}

const SAMPLE_SIZE = 50;

/** Restores every vault of a backup into a scratch database, compares, and drops it. Throws a Failure for any difference. */
export async function drillRestore(
  options: DrillOptions,
): Promise<readonly DrilledVault[]> {
  const {
    couch,
    backup,
    scratch: prefix = SCRATCH_PREFIX,
    busy,
    freeBytes,
    signal,
    progress,
  } = options;
  const manifest = readNotesManifest(backup);
  await verifyFiles(backup, signal, progress);
  const drilled: DrilledVault[] = [];
  for (const [index, entry] of manifest.vaults.entries()) {
    const target = `${prefix}${index + 1}`;
    const scratch = new Database(couch, target);
    busy.add(target);
    try {
      await scratch.drop();
      needDrillRoom(`vault ${entry.name}`, bytesOf(entry), freeBytes());
      await restoreVault({
        couch,
        backup,
        entry,
        target,
        signal,
        progress: (_text, done = 0) =>
          progress(
            `vault ${entry.name}`,
            (index + done) / manifest.vaults.length,
          ),
      });
      const compared = await compareSample(
        scratch,
        backup,
        entry,
        await supportedBy(couch),
        signal,
      );
      drilled.push({
        vault: entry.name,
        ...(await countAll(scratch, signal)),
        compared,
      });
    } finally {
      await scratch.drop();
      busy.delete(target);
    }
  }
  return drilled;
}

/** Of a vault's lines. Backups of old releases do not have the sizes. */
function bytesOf({ size = 0, parts }: VaultEntry): number {
  return size + sum(parts.map((part) => part.size));
}

/** Compares an evenly distributed sample of revisions with the scratch database. */
async function compareSample(
  scratch: Database,
  backup: string,
  entry: VaultEntry,
  isSupported: (document: CouchDocument) => boolean,
  signal: AbortSignal,
): Promise<number> {
  const every = Math.max(1, Math.floor(entry.leaves / SAMPLE_SIZE));
  let line = -1;
  let compared = 0;
  for await (const text of readLeaves(backup, entry)) {
    line += 1;
    if (line % every !== 0) {
      continue;
    }
    const kept = parseDocument(text);
    if (!isSupported(kept)) {
      continue;
    }
    const [given] = await scratch.revisions(
      [{ id: kept._id, rev: kept._rev }],
      { signal },
    );
    if (given === undefined || !isDeepStrictEqual(kept, given)) {
      throw new Failure(
        `document ${kept._id} of vault ${entry.name} differs after a restore of the backup ${backup}: take a new backup now (\`hearth notes backup\`) and keep this one for inspection.`,
      );
    }
    compared += 1;
  }
  return compared;
}
