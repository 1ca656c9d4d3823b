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
import { lastLinesOf } from "../last-lines.ts";

const MAX_LOG_BYTES = 10 * 1024 * 1024;
const TAIL_BLOCK = 256 * 1024;

/**
 * Limits the size of a log by copying it to `<name>.1` and truncating it in place: the writing program has it open for
 * appending and continues at the new end.
 */
export function rotate(path: string, limit: number = MAX_LOG_BYTES): boolean {
  const size = sizeOf(path);
  if (size <= limit) {
    return false;
  }
  copyFileSync(path, `${path}.1`);
  truncateSync(path, 0);
  return true;
}

/** Rotates every log in a directory. Throws the errors after trying all. */
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

/** Size of the file in bytes, 0 if it does not exist. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** The last `lines` lines of a file, from byte `from` on; none if it does not exist. Reads at most the last 256 KiB. */
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
    return lines === 0 ? [] : lastLinesOf(block.toString("utf8"), lines);
  } finally {
    closeSync(file);
  }
}
