import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statfsSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { threadId } from "node:worker_threads";
import { isFullDisk } from "../../core/failure.ts";
import { UNFINISHED } from "./schema.ts";

/** More than a compaction step and the write-ahead log before its checkpoint need. */
export const RESERVE_BYTES = 16 * 1024 * 1024;
const ZEROS = Buffer.alloc(1024 * 1024);

/** A file that reserves disk space for compaction when the disk is full; shared by the databases of a directory. */
export function keepReserve(path: string): boolean {
  if (existsSync(path)) {
    return true;
  }
  const { bavail, bsize } = statfsSync(dirname(path));
  if (bavail * bsize < RESERVE_BYTES) {
    return false;
  }
  // After a kill, it is removed with unfinished databases at the next start.
  const next = `${path}.sqlite${UNFINISHED}${threadId}`;
  try {
    const file = openSync(next, "w", 0o600);
    try {
      for (let written = 0; written < RESERVE_BYTES;) {
        written += writeSync(file, ZEROS);
      }
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(next, path);
    return true;
  } catch (failure) {
    rmSync(next, { force: true });
    if (isFullDisk(failure)) {
      return false;
    }
    throw failure;
  }
}

export function releaseReserve(path: string): void {
  rmSync(path, { force: true });
}
