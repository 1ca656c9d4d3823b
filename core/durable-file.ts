import {
  closeSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

/**
 * Replaces a file so that a crash at any moment leaves the old one or the new one, never half of it.
 * The file has `mode` from its first byte on.
 */
export function writeDurably(
  path: string,
  text: string,
  mode: number = 0o600,
): void {
  const next = `${path}.${process.pid}.next`;
  try {
    rmSync(next, { force: true });
    const file = openSync(next, "wx", mode);
    try {
      // Unlike writeSync it goes on until all is written, or throws: half a file must not take the place of a good one.
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(next, path);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  }
  syncDirectory(dirname(path));
}

/** Makes names in a directory (a rename, a new file) survive a power cut. */
export function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
