import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { HOUR_MS } from "./duration.ts";
import { mapLimited } from "./map-limited.ts";

/** Concurrent flushes share writes of the file system's journal: a release takes a second instead of eight. */
const CONCURRENT_FLUSHES = 16;

/**
 * Replaces a file so that a crash at any moment leaves either the old or the new one, never a part.
 * The file has `mode` from the start.
 */
export function writeDurably(
  path: string,
  text: string,
  mode: number = 0o600,
): void {
  removeLeftOvers(path);
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

const LEFT_OVER = /^\.\d+\.next$/;
/** No write takes this long. A process's id does not show that it has ended: it may be that of another container. */
const LEFT_OVER_AFTER_MS = HOUR_MS;

/** Removes what processes that were killed while writing have left; where that fails, the file is written nevertheless. */
function removeLeftOvers(path: string): void {
  const [directory, name] = [dirname(path), basename(path)];
  try {
    for (const other of readdirSync(directory)) {
      if (
        other.startsWith(name) &&
        LEFT_OVER.test(other.slice(name.length)) &&
        Date.now() - statSync(join(directory, other)).mtimeMs >
          LEFT_OVER_AFTER_MS
      ) {
        rmSync(join(directory, other));
      }
    }
  } catch {
    // Another process may have removed it, or may alone remove it.
  }
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

/**
 * Makes everything in a directory survive a power failure. Without it, a directory that was filled and then renamed may
 * contain empty files afterwards.
 */
export async function syncTree(directory: string): Promise<void> {
  const paths = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() || entry.isDirectory())
    .map(({ parentPath, name }) => join(parentPath, name));
  await mapLimited([...paths, directory], CONCURRENT_FLUSHES, async (path) => {
    const file = await open(path, "r");
    await file.sync().finally(() => file.close());
  });
}
