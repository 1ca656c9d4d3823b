import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

/**
 * Replaces a file so that a crash at any moment leaves either the old or the new one, never a part.
 * The file has `mode` from the start.
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
      // Unlike writeSync, writes everything or throws: a partial file must not replace a complete one.
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

/** The same, unless the file has this text already: on a full disk, nothing else could be written. */
export function writeIfChanged(path: string, text: string): void {
  if (!existsSync(path) || readFileSync(path, "utf8") !== text) {
    writeDurably(path, text);
  }
}

/** Makes changes of a directory (a rename, a new file) survive a power failure. */
export function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
