import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isFullDisk } from "../../core/failure.ts";

const FILLER = "filler";
const PIECES = [1024 * 1024, 4096].map((bytes) => Buffer.alloc(bytes));

/** A small tmpfs. */
interface SmallDisk {
  readonly path: string;
  readonly fill: () => void;
  readonly free: () => void;
  readonly remove: () => void;
}

/** Creates a small disk; undefined where mounting is not permitted. */
export function createSmallDisk(megabytes: number): SmallDisk | undefined {
  const path = mkdtempSync(join(tmpdir(), "hearth-disk-"));
  if (!mountSmallDisk(path, megabytes)) {
    rmSync(path, { recursive: true });
    return undefined;
  }
  return {
    path,
    fill: () => fillDisk(path),
    free: () => freeDisk(path),
    remove: () => unmountDisk(path),
  };
}

export function mountSmallDisk(path: string, megabytes: number): boolean {
  const size = `size=${megabytes}m,mode=711`;
  const done = spawnSync("mount", ["-t", "tmpfs", "-o", size, "hearth", path]);
  return done.status === 0;
}

/** Deletes the directory, too, with what the disk had hidden in it. Lazily: a process that has not ended yet may have open files there. */
export function unmountDisk(path: string): void {
  if (spawnSync("umount", ["--lazy", path]).status === 0) {
    rmSync(path, { recursive: true });
  }
}

/** Fills the disk completely: until a write fails, since blocks that were just freed may not be counted as available yet. */
export function fillDisk(path: string): void {
  for (const piece of PIECES) {
    try {
      for (;;) {
        writeFileSync(join(path, FILLER), piece, { flag: "a" });
      }
    } catch (error) {
      if (!isFullDisk(error)) {
        throw error;
      }
    }
  }
}

export function freeDisk(path: string): void {
  const filler = join(path, FILLER);
  // A program that another test is starting may have it open: deleted only, it would keep its room for a while.
  writeFileSync(filler, "");
  rmSync(filler);
}
