import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FILLER = "filler";
const PIECE = Buffer.alloc(1024 * 1024);

/** A small tmpfs. */
export interface SmallDisk {
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

export function unmountDisk(path: string): void {
  spawnSync("umount", [path]);
  spawnSync("rmdir", [path]);
}

/** Fills the disk completely. */
export function fillDisk(path: string): void {
  const { bavail, bsize } = statfsSync(path);
  const pieces = Math.ceil((bavail * bsize) / PIECE.length);
  for (let index = 0; index <= pieces; index += 1) {
    try {
      writeFileSync(join(path, FILLER), PIECE, { flag: "a" });
    } catch {
      return;
    }
  }
}

export function freeDisk(path: string): void {
  rmSync(join(path, FILLER), { force: true });
}
