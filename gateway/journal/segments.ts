import fs from "node:fs";
import path from "node:path";
import {
  UNFINISHED,
  preallocate,
  preallocateNow,
  segmentName,
  syncData,
  syncDirectory,
  writeFully,
  type Segment,
} from "./segment.ts";

/** After the disk had no room for a segment it is asked again this many milliseconds later. */
const RETRY_ALLOCATION_MS = 1_000;
/** Part of the limit above which an operator should look. */
const NEAR_LIMIT = 0.8;

export interface SegmentsOptions {
  readonly directory: string;
  /** Bytes of each new segment. */
  readonly segmentBytes: number;
  /** Bytes that all segments together may take. */
  readonly limitBytes: number;
  /** Bytes kept free for each line that must still fit whatever happens. */
  readonly reserveBytes: number;
  readonly now: () => number;
  /** Called when there is something to flush. */
  readonly dirtied: () => void;
  /** Called when the disk gave no room for another segment. */
  readonly allocationFailed: (error: unknown) => void;
}

/**
 * The journal's files in order: those written full, the active one, and spare ones made ahead.
 *
 * Room is counted in reserves: a file with `free` bytes holds `floor(free / reserveBytes)` lines of at most
 * `reserveBytes`, in whichever order and lengths they come; a line never goes on in the next file.
 */
export interface Segments {
  /** Oldest first; never empty. */
  readonly list: readonly Segment[];
  active(): Segment;
  /**
   * Makes a segment active that has room for a line of `length` bytes, with room for `reserves` reserves left after it.
   * False when there is no such room and the disk or the limit gives none.
   */
  reserve(length: number, reserves: number): boolean;
  /** Whether `reserve` would succeed, supposing that a disk that gave room last time gives it again. */
  hasRoom(length: number, reserves: number): boolean;
  /** Writes a line to the active segment, which has room for it. Throws what the system says; the line then does not count as written. */
  append(line: Buffer): void;
  /** Starts making a spare segment when less than a segment is free beside `reserves` reserves. */
  keepSpare(reserves: number): void;
  /** Makes the next segment active when this one holds lines and a spare is there; says whether it did. */
  leaveActive(): boolean;
  /** Flushes all that was written, oldest first. */
  sync(): Promise<void>;
  /** Takes the oldest segment, which is not the active one, out of the list; its file stays until `unlink`. */
  dropOldest(): Segment;
  unlink(segment: Segment): Promise<void>;
  /** Bytes of files that can take no more lines. */
  usedBytes(): number;
  /** Whether lines and `reserves` reserves take most of the limit, or the disk gave no room last time. */
  nearLimit(reserves: number): boolean;
  /** Resolves when no segment is being made. */
  quiet(): Promise<void>;
  /** Closes the files, after the last `sync`. */
  close(): void;
}

/**
 * Goes on with the segments that recovery found (oldest first, the active one and later ones open for writing), or
 * makes the first.
 */
export async function openSegments(
  options: SegmentsOptions,
  found: readonly Segment[],
  activeNumber: number,
): Promise<Segments> {
  const { directory, segmentBytes, limitBytes, reserveBytes, now } = options;
  const list: Segment[] = [...found];
  const dirty = new Set<Segment>();
  const perSegment = Math.floor(segmentBytes / reserveBytes);
  let totalBytes = list.reduce((sum, segment) => sum + segment.size, 0);
  let lastNumber = list.at(-1)?.number ?? 0;
  let directoryChanged = false;
  let allocating: Promise<void> | null = null;
  let diskFullSince = -Infinity;

  if (list.length === 0) {
    const file = unfinishedFile("first");
    adopt(file, await preallocate(file, segmentBytes));
  }
  let active =
    list.find((segment) => segment.number === activeNumber) ??
    (list[0] as Segment);
  const spares = list.slice(list.indexOf(active) + 1);
  let spareReserves = sparesFrom(0);

  function unfinishedFile(name: string): string {
    return path.join(directory, `${name}${UNFINISHED}`);
  }

  function adopt(unfinished: string, fd: number): Segment {
    const number = lastNumber + 1;
    const file = path.join(directory, segmentName(number));
    fs.renameSync(unfinished, file);
    const segment = { number, path: file, size: segmentBytes, end: 0, fd };
    lastNumber = number;
    list.push(segment);
    totalBytes += segmentBytes;
    directoryChanged = true;
    diskFullSince = -Infinity;
    return segment;
  }

  function addSpare(unfinished: string, fd: number): void {
    spares.push(adopt(unfinished, fd));
    spareReserves = sparesFrom(0);
    options.dirtied();
  }

  /** Reserves in the spare segments from the given one on. */
  function sparesFrom(index: number): number {
    let reserves = 0;
    for (let at = index; at < spares.length; at++) {
      reserves += Math.floor((spares[at]?.size ?? 0) / reserveBytes);
    }
    return reserves;
  }

  /** Reserves left after a line of `length` bytes; -1 when there is no room for the line. */
  function reservesAfter(length: number): number {
    const left = active.size - active.end - length;
    if (left >= 0) {
      return Math.floor(left / reserveBytes) + spareReserves;
    }
    for (const [index, spare] of spares.entries()) {
      if (spare.size >= length) {
        const rest = Math.floor((spare.size - length) / reserveBytes);
        return rest + sparesFrom(index + 1);
      }
    }
    return -1;
  }

  function moveToRoomFor(length: number): void {
    while (active.size - active.end < length) {
      const next = spares.shift();
      if (next === undefined) {
        throw new Error("The journal counted its room wrongly.");
      }
      active = next;
      spareReserves = sparesFrom(0);
    }
  }

  function mayAllocate(): boolean {
    const underWay = allocating === null ? 0 : segmentBytes;
    const sinceFailure = Math.abs(now() - diskFullSince);
    return (
      totalBytes + underWay + segmentBytes <= limitBytes &&
      sinceFailure >= RETRY_ALLOCATION_MS
    );
  }

  function noteFailure(error: unknown): void {
    diskFullSince = now();
    options.allocationFailed(error);
  }

  /** Throws unless two more segments fit: the last free bytes of a disk are for others, such as Postgres. */
  function checkDisk(): void {
    const disk = fs.statfsSync(directory);
    if (disk.bavail * disk.bsize >= 2 * segmentBytes) {
      return;
    }
    throw new Error(`The disk of ${directory} is full.`);
  }

  function allocateNow(): boolean {
    if (!mayAllocate()) {
      return false;
    }
    try {
      checkDisk();
      const file = unfinishedFile("burst");
      addSpare(file, preallocateNow(file, segmentBytes));
      // Its zeros are flushed with its first lines.
      return true;
    } catch (error) {
      noteFailure(error);
      return false;
    }
  }

  async function allocate(): Promise<void> {
    try {
      checkDisk();
      const file = unfinishedFile("spare");
      addSpare(file, await preallocate(file, segmentBytes));
    } catch (error) {
      noteFailure(error);
    } finally {
      allocating = null;
    }
  }

  function closeFile(segment: Segment): void {
    if (segment.fd !== null) {
      fs.closeSync(segment.fd);
    }
    segment.fd = null;
  }

  function usedBytes(): number {
    const free = spares.reduce((sum, { size }) => sum + size, 0);
    return totalBytes - free - (active.size - active.end);
  }

  return {
    list,
    active: () => active,
    reserve(length, reserves) {
      while (reservesAfter(length) < reserves) {
        if (length > segmentBytes || !allocateNow()) {
          return false;
        }
      }
      moveToRoomFor(length);
      return true;
    },
    hasRoom: (length, reserves) =>
      reservesAfter(length) >= reserves ||
      (diskFullSince === -Infinity && mayAllocate()),
    append(line) {
      if (active.fd === null) {
        throw new Error("The journal is closed.");
      }
      writeFully(active.fd, line, active.end);
      active.end += line.length;
      dirty.add(active);
      options.dirtied();
    },
    keepSpare(reserves) {
      const left = Math.floor((active.size - active.end) / reserveBytes);
      if (left + spareReserves - reserves >= perSegment) {
        return;
      }
      if (allocating === null && mayAllocate()) {
        allocating = allocate();
      }
    },
    leaveActive() {
      const next = active.end > 0 ? spares.shift() : undefined;
      if (next === undefined) {
        return false;
      }
      active = next;
      spareReserves = sparesFrom(0);
      return true;
    },
    async sync() {
      if (directoryChanged) {
        directoryChanged = false;
        try {
          await syncDirectory(directory);
        } catch (error) {
          directoryChanged = true;
          throw error;
        }
      }
      for (const segment of [...dirty]) {
        dirty.delete(segment);
        if (segment.fd === null) {
          continue;
        }
        try {
          await syncData(segment.fd);
        } catch (error) {
          dirty.add(segment);
          throw error;
        }
      }
      for (const segment of list) {
        if (segment === active) {
          break;
        }
        if (!dirty.has(segment)) {
          closeFile(segment);
        }
      }
    },
    dropOldest() {
      const oldest = list.shift();
      if (oldest === undefined || oldest === active) {
        throw new Error("The journal's active segment cannot be dropped.");
      }
      return oldest;
    },
    async unlink(segment) {
      closeFile(segment);
      dirty.delete(segment);
      await fs.promises.rm(segment.path, { force: true });
      totalBytes -= segment.size;
      directoryChanged = true;
    },
    usedBytes,
    nearLimit: (reserves) =>
      usedBytes() + reserves * reserveBytes > limitBytes * NEAR_LIMIT ||
      diskFullSince > -Infinity,
    async quiet() {
      await allocating;
    },
    close() {
      for (const segment of list) {
        closeFile(segment);
      }
    },
  };
}
