import fs from "node:fs";
import {
  SegmentAllocator,
  type AllocatorOptions,
} from "./segment-allocator.ts";
import type { Recovered } from "./journal-recovery.ts";
import { clearBytes, syncData, writeFully, type Segment } from "./segment.ts";

/** Part of the limit above which operators are alerted. */
const NEAR_LIMIT = 0.8;

export interface SegmentsOptions extends AllocatorOptions {
  /** Bytes reserved for each line that must always fit. */
  readonly reserveBytes: number;
  /** Called when there is something to flush. */
  readonly dirtied: () => void;
}

/**
 * Continues the segments that recovery found (oldest first, the active one and later ones open for writing), or creates
 * the first.
 */
export async function openSegments(
  options: SegmentsOptions,
  { segments: found, kept, active }: Recovered,
): Promise<Segments> {
  const allocator = new SegmentAllocator(options, found);
  for (const { segment, touchedAt } of kept) {
    allocator.kept.addRecovered(segment, touchedAt);
  }
  const segments = found.length > 0 ? found : [await allocator.allocateFirst()];
  return new Segments(options, allocator, segments, active);
}

/**
 * The journal's files in order: full ones, the active one, and spare ones created ahead.
 *
 * Room is counted in reserves: a file with `free` bytes has room for `floor(free / reserveBytes)` lines of at most
 * `reserveBytes`, in any order and length; a line never continues in the next file.
 */
export class Segments {
  readonly #options: SegmentsOptions;
  readonly #allocator: SegmentAllocator;
  readonly #list: Segment[];
  readonly #spares: Segment[];
  readonly #dirty = new Set<Segment>();
  #active: Segment;
  /** Reserves in all spare segments. */
  #spareReserves: number;

  constructor(
    options: SegmentsOptions,
    allocator: SegmentAllocator,
    segments: readonly Segment[],
    activeNumber: number,
  ) {
    this.#options = options;
    this.#allocator = allocator;
    this.#list = [...segments];
    this.#active =
      this.#list.find((segment) => segment.number === activeNumber) ??
      (this.#list[0] as Segment);
    this.#spares = this.#list.slice(this.#list.indexOf(this.#active) + 1);
    this.#spareReserves = this.#sparesFrom(0);
  }

  /** Oldest first; never empty. */
  get list(): readonly Segment[] {
    return this.#list;
  }

  active(): Segment {
    return this.#active;
  }

  /**
   * Activates a segment that has room for a line of `length` bytes, with room for `reserves` reserves left after it.
   * False when there is no such room and the disk or the limit gives none.
   */
  reserve(length: number, reserves: number): boolean {
    while (this.#reservesAfter(length) < reserves) {
      if (length > this.#options.segmentBytes || !this.#allocateNow()) {
        return false;
      }
    }
    this.#moveToRoomFor(length);
    return true;
  }

  /** Whether `reserve` would succeed, supposing that a disk that gave room last time gives it again. */
  hasRoom(length: number, reserves: number): boolean {
    return (
      this.#reservesAfter(length) >= reserves ||
      (!this.#allocator.isDiskFull && this.#allocator.mayAllocate())
    );
  }

  /** Writes a line to the active segment, which has room for it. Throws the system's error; the line then does not count as written. */
  append(line: Buffer): void {
    const active = this.#active;
    if (active.fd === null) {
      throw new Error("The journal is closed.");
    }
    writeFully(active.fd, line, active.end);
    active.end += line.length;
    this.#dirty.add(active);
    this.#options.dirtied();
  }

  /** Whether the disk takes a line: writes the zeros again that are where the next one goes. */
  takesWrites(): boolean {
    const { size, end, fd } = this.#active;
    try {
      if (fd !== null) {
        const next = Math.min(end + this.#options.reserveBytes, size);
        clearBytes(fd, end, next);
      }
      return true;
    } catch {
      return false;
    }
  }

  /** Starts creating a spare segment when less than a segment is free beyond `reserves` reserves. */
  keepSpare(reserves: number): void {
    const { segmentBytes, reserveBytes } = this.#options;
    const { size, end } = this.#active;
    const left = Math.floor((size - end) / reserveBytes) + this.#spareReserves;
    if (left - reserves < Math.floor(segmentBytes / reserveBytes)) {
      this.#allocator.startAllocating((segment) => this.#addSpare(segment));
    }
  }

  /** Activates the next segment when this one has lines and a spare exists; answers whether it did. */
  leaveActive(): boolean {
    const next = this.#active.end > 0 ? this.#spares.shift() : undefined;
    if (next === undefined) {
      return false;
    }
    this.#activate(next);
    return true;
  }

  /** Flushes all that was written, oldest first. */
  async sync(): Promise<void> {
    if (this.#allocator.hasChanged) {
      await this.#allocator.sync();
    }
    for (const segment of [...this.#dirty]) {
      this.#dirty.delete(segment);
      if (segment.fd === null) {
        continue;
      }
      try {
        await syncData(segment.fd);
      } catch (error) {
        this.#dirty.add(segment);
        throw error;
      }
    }
    for (const segment of this.#list) {
      if (segment === this.#active) {
        break;
      }
      if (!this.#dirty.has(segment)) {
        closeFile(segment);
      }
    }
  }

  /** Segments that are in the ledger and still there, oldest first. */
  get kept(): readonly Segment[] {
    return this.#allocator.kept.list;
  }

  get keptBytes(): number {
    return this.#allocator.kept.bytes;
  }

  /** Moves the oldest segment, which is not the active one, from the list to the kept ones; to be followed by `releaseKept`. */
  keepOldest(): Segment {
    const oldest = this.#list.shift();
    if (oldest === undefined || oldest === this.#active) {
      throw new Error("The journal's active segment cannot be dropped.");
    }
    this.#allocator.keep(oldest);
    return oldest;
  }

  /** Kept segments may be deleted from now on: what was carried out of them is on the disk. */
  releaseKept(segments: readonly Segment[]): void {
    for (const segment of segments) {
      closeFile(segment);
      this.#dirty.delete(segment);
    }
    this.#allocator.kept.flushed(segments);
  }

  /** Deletes kept segments whose time is over, or whose room others need. */
  sweepKept(): void {
    this.#allocator.kept.sweep();
  }

  /** Bytes of files that can take no more lines. */
  usedBytes(): number {
    const free = this.#spares.reduce((sum, { size }) => sum + size, 0);
    const { size, end } = this.#active;
    return this.#allocator.totalBytes - free - (size - end);
  }

  /** Whether lines and `reserves` reserves take most of the limit, or the disk gave no room last time. */
  nearLimit(reserves: number): boolean {
    const { reserveBytes, limitBytes } = this.#options;
    const taken = this.usedBytes() + reserves * reserveBytes;
    return taken > limitBytes * NEAR_LIMIT || this.#allocator.isDiskFull;
  }

  /** Resolves when no segment is being created. */
  quiet(): Promise<void> {
    return this.#allocator.quiet();
  }

  /** Closes the files, after the last `sync`. */
  close(): void {
    for (const segment of this.#list) {
      closeFile(segment);
    }
  }

  /** Reserves left after a line of `length` bytes; -1 when there is no room for the line. */
  #reservesAfter(length: number): number {
    const { reserveBytes } = this.#options;
    const left = this.#active.size - this.#active.end - length;
    if (left >= 0) {
      return Math.floor(left / reserveBytes) + this.#spareReserves;
    }
    for (const [index, spare] of this.#spares.entries()) {
      if (spare.size >= length) {
        const rest = Math.floor((spare.size - length) / reserveBytes);
        return rest + this.#sparesFrom(index + 1);
      }
    }
    return -1;
  }

  /** Reserves in the spare segments from the given one on. */
  #sparesFrom(index: number): number {
    let reserves = 0;
    for (let at = index; at < this.#spares.length; at++) {
      const size = this.#spares[at]?.size ?? 0;
      reserves += Math.floor(size / this.#options.reserveBytes);
    }
    return reserves;
  }

  #moveToRoomFor(length: number): void {
    while (this.#active.size - this.#active.end < length) {
      const next = this.#spares.shift();
      if (next === undefined) {
        throw new Error("The journal's room accounting is inconsistent.");
      }
      this.#activate(next);
    }
  }

  #activate(next: Segment): void {
    this.#active = next;
    this.#spareReserves = this.#sparesFrom(0);
  }

  #allocateNow(): boolean {
    const segment = this.#allocator.allocateNow();
    if (segment === null) {
      return false;
    }
    this.#addSpare(segment);
    return true;
  }

  #addSpare(segment: Segment): void {
    this.#list.push(segment);
    this.#spares.push(segment);
    this.#spareReserves = this.#sparesFrom(0);
    this.#options.dirtied();
  }
}

function closeFile(segment: Segment): void {
  if (segment.fd !== null) {
    fs.closeSync(segment.fd);
  }
  segment.fd = null;
}
