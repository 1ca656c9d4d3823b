import {
  closeSync,
  copyFileSync,
  fstatSync,
  openSync,
  readSync,
  readdirSync,
  statSync,
  truncateSync,
} from "node:fs";
import { join } from "node:path";

const LARGEST_LOG = 10 * 1024 * 1024;
const TAIL_BLOCK = 256 * 1024;

/**
 * Keeps a log below a size by copying it to `<name>.1` and emptying it in place: the program that writes has it open for
 * appending and goes on at the new end.
 */
export function rotate(path: string, limit: number = LARGEST_LOG): boolean {
  const size = sizeOf(path);
  if (size <= limit) {
    return false;
  }
  copyFileSync(path, `${path}.1`);
  truncateSync(path, 0);
  return true;
}

/** Rotates every log in a directory, whoever writes it. Throws after all of them what kept some from it. */
export function rotateAll(directory: string): void {
  const failures: unknown[] = [];
  for (const name of readdirSync(directory)) {
    try {
      if (/\.(log|jsonl)$/.test(name)) {
        rotate(join(directory, name));
      }
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) {
    throw new AggregateError(failures);
  }
}

/** Bytes in the file, 0 when there is none. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** The last `lines` lines of a file, from byte `from` on; none when there is no file. Reads at most the last 256 KiB. */
export function lastLines(
  path: string,
  lines: number,
  from: number = 0,
): readonly string[] {
  if (sizeOf(path) === 0) {
    return [];
  }
  const file = openSync(path, "r");
  try {
    const size = fstatSync(file).size;
    const start = Math.max(from > size ? 0 : from, size - TAIL_BLOCK, 0);
    const block = Buffer.alloc(size - start);
    readSync(file, block, 0, block.length, start);
    const text = block.toString("utf8").split("\n");
    if (text.at(-1) === "") {
      text.pop();
    }
    return lines === 0 ? [] : text.slice(-lines);
  } finally {
    closeSync(file);
  }
}
