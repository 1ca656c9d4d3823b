import fs from "node:fs";
import path from "node:path";

/** A file of the journal, `NNNNNN.jsonl`: lines from its beginning, then zero bytes that reserve its room on the disk. */
export interface Segment {
  readonly number: number;
  readonly path: string;
  /** Bytes of the file. */
  readonly size: number;
  /** Bytes that hold lines. */
  end: number;
  /** Open for writing; null once a later segment is active. */
  fd: number | null;
}

const NAME = /^(\d{6,})\.jsonl$/;
/** A segment still being filled with zeros has this ending, and is deleted at the next start. */
export const UNFINISHED = ".new";
const ZEROS = Buffer.alloc(1024 * 1024);

export function segmentName(number: number): string {
  return `${String(number).padStart(6, "0")}.jsonl`;
}

/** The number of a segment's file name; null for other names. */
function segmentNumber(name: string): number | null {
  const digits = NAME.exec(name)?.[1];
  return digits === undefined ? null : Number(digits);
}

/**
 * Creates a file of `bytes` zero bytes, flushed to the disk, and returns its descriptor, open for writing.
 * Real zeros rather than a longer `truncate`: a sparse file has no reserved room on a full disk.
 * Leaves nothing behind when it fails.
 */
export async function preallocate(
  file: string,
  bytes: number,
): Promise<number> {
  const handle = await fs.promises.open(file, "w");
  try {
    for (let offset = 0; offset < bytes;) {
      const length = Math.min(ZEROS.length, bytes - offset);
      offset += (await handle.write(ZEROS, 0, length, offset)).bytesWritten;
    }
    await handle.sync();
    return fs.openSync(file, "r+");
  } catch (error) {
    fs.rmSync(file, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

/** As `preallocate`, but at once and not yet flushed: for a burst that is faster than the background. */
export function preallocateNow(file: string, bytes: number): number {
  const fd = fs.openSync(file, "w");
  try {
    for (let offset = 0; offset < bytes;) {
      const length = Math.min(ZEROS.length, bytes - offset);
      offset += fs.writeSync(fd, ZEROS, 0, length, offset);
    }
    return fd;
  } catch (error) {
    fs.closeSync(fd);
    fs.rmSync(file, { force: true });
    throw error;
  }
}

/** Writes all of `bytes` at `offset`; throws the system's error, having written a part or nothing. */
export function writeFully(fd: number, bytes: Buffer, offset: number): void {
  for (let done = 0; done < bytes.length;) {
    done += fs.writeSync(fd, bytes, done, bytes.length - done, offset + done);
  }
}

/** Overwrites `[from, to)` with zeros. */
export function clearBytes(fd: number, from: number, to: number): void {
  for (let offset = from; offset < to;) {
    const length = Math.min(ZEROS.length, to - offset);
    writeFully(fd, ZEROS.subarray(0, length), offset);
    offset += length;
  }
}

/** The offset after the last byte that is not zero; `from` when there is none after it. */
export function endOfContent(bytes: Buffer, from: number): number {
  let end = bytes.length;
  while (end > from) {
    const start = Math.max(from, end - ZEROS.length);
    if (bytes.compare(ZEROS, 0, end - start, start, end) !== 0) {
      break;
    }
    end = start;
  }
  while (end > from && bytes[end - 1] === 0) {
    end--;
  }
  return end;
}

/** Flushes a file's bytes without blocking the event loop. */
export function syncData(fd: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fs.fdatasync(fd, (error) => (error === null ? resolve() : reject(error)));
  });
}

/** Makes names in the directory durable across a power cut. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await fs.promises.open(directory, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The segments in the directory, by number. Files being filled when the process died are deleted. */
export async function listSegments(
  directory: string,
): Promise<{ readonly number: number; readonly path: string }[]> {
  const found = [];
  for (const name of await fs.promises.readdir(directory)) {
    const file = path.join(directory, name);
    if (name.endsWith(UNFINISHED)) {
      await fs.promises.rm(file, { force: true });
    }
    const number = segmentNumber(name);
    if (number !== null) {
      found.push({ number, path: file });
    }
  }
  return found.sort((a, b) => a.number - b.number);
}
