import fs from "node:fs";
import path from "node:path";
import { KeptSegments } from "./kept-segments.ts";
import {
  UNFINISHED,
  preallocate,
  preallocateNow,
  segmentName,
  syncDirectory,
  type Segment,
} from "./segment.ts";

/** Retry delay in ms after the disk had no room for a segment. */
const RETRY_ALLOCATION_MS = 1_000;

export interface AllocatorOptions {
  readonly directory: string;
  /** Bytes of each new segment. */
  readonly segmentBytes: number;
  /** Bytes that all segments together may take. */
  readonly limitBytes: number;
  /** How long segments that are in the ledger stay while nothing needs their room, in ms. */
  readonly keepMs: number;
  /** Numbers of new segments are higher. */
  readonly lastNumber: number;
  readonly now: () => number;
  /** Called when the disk has no room for another segment. */
  readonly allocationFailed: (error: unknown) => void;
  readonly deletionFailed: (segment: Segment, error: unknown) => void;
}

/**
 * Creates the journal's files, within its limit and the room on the disk. Segments that are only kept give way, oldest
 * first.
 */
export class SegmentAllocator {
  readonly kept: KeptSegments;
  readonly #options: AllocatorOptions;
  #totalBytes: number;
  #lastNumber: number;
  #allocating: Promise<void> | null = null;
  #diskFullSince = -Infinity;
  #directoryChanged = false;

  /** `found`: the existing files, oldest first, without kept ones. */
  constructor(options: AllocatorOptions, found: readonly Segment[]) {
    this.#options = options;
    this.#totalBytes = found.reduce((sum, segment) => sum + segment.size, 0);
    this.#lastNumber = Math.max(found.at(-1)?.number ?? 0, options.lastNumber);
    this.kept = new KeptSegments({
      ...options,
      onDeleted: () => (this.#directoryChanged = true),
      onFailed: options.deletionFailed,
    });
  }

  /** Bytes of all files except those that are only kept. */
  get totalBytes(): number {
    return this.#totalBytes + this.kept.pinnedBytes;
  }

  /** The disk had no room last time. */
  get isDiskFull(): boolean {
    return this.#diskFullSince > -Infinity;
  }

  /** Whether the limit has room for another segment; after a failure, also whether it is time to ask the disk again. */
  mayAllocate(): boolean {
    const { segmentBytes, limitBytes, now } = this.#options;
    const underWay = this.#allocating === null ? 0 : segmentBytes;
    const sinceFailure = Math.abs(now() - this.#diskFullSince);
    return (
      this.totalBytes + underWay + segmentBytes <= limitBytes &&
      sinceFailure >= RETRY_ALLOCATION_MS
    );
  }

  /** The first segment of an empty directory. Throws when there is no room for it. */
  async allocateFirst(): Promise<Segment> {
    const file = this.#unfinishedFile("first");
    const fd = await preallocate(file, this.#options.segmentBytes);
    return this.#adopt(file, fd);
  }

  /** A segment at once; null when the disk or the limit has no room. Its zeros are flushed with its first lines. */
  allocateNow(): Segment | null {
    if (!this.mayAllocate()) {
      return null;
    }
    try {
      this.#makeRoom();
      const file = this.#unfinishedFile("burst");
      return this.#adopt(
        file,
        preallocateNow(file, this.#options.segmentBytes),
      );
    } catch (error) {
      if (isNoRoom(error) && this.kept.deleteOldest()) {
        return this.allocateNow();
      }
      this.#noteFailure(error);
      return null;
    }
  }

  /** Creates a segment in the background unless one is being created or there is no room. */
  startAllocating(onCreated: (segment: Segment) => void): void {
    if (this.#allocating === null && this.mayAllocate()) {
      // Not in `#allocate` itself: it may end before its promise is assigned.
      this.#allocating = this.#allocate(onCreated).finally(() => {
        this.#allocating = null;
      });
    }
  }

  /** Resolves when no segment is being created. */
  async quiet(): Promise<void> {
    await this.#allocating;
  }

  /** The segment is in the ledger: it takes room that nothing else needs from now on. */
  keep(segment: Segment): void {
    this.#totalBytes -= segment.size;
    this.kept.add(segment);
  }

  /** Files were created or deleted since the last `sync`. */
  get hasChanged(): boolean {
    return this.#directoryChanged;
  }

  /** Flushes the directory. */
  async sync(): Promise<void> {
    this.#directoryChanged = false;
    try {
      await syncDirectory(this.#options.directory);
    } catch (error) {
      this.#directoryChanged = true;
      throw error;
    }
  }

  async #allocate(onCreated: (segment: Segment) => void): Promise<void> {
    try {
      this.#makeRoom();
      const file = this.#unfinishedFile("spare");
      const fd = await preallocate(file, this.#options.segmentBytes);
      onCreated(this.#adopt(file, fd));
    } catch (error) {
      if (isNoRoom(error) && this.kept.deleteOldest()) {
        return this.#allocate(onCreated);
      }
      this.#noteFailure(error);
    }
  }

  #unfinishedFile(name: string): string {
    return path.join(this.#options.directory, `${name}${UNFINISHED}`);
  }

  #adopt(unfinished: string, fd: number): Segment {
    const { directory, segmentBytes } = this.#options;
    const number = this.#lastNumber + 1;
    const file = path.join(directory, segmentName(number));
    try {
      fs.renameSync(unfinished, file);
    } catch (error) {
      fs.closeSync(fd);
      fs.rmSync(unfinished, { force: true });
      throw error;
    }
    this.#lastNumber = number;
    this.#totalBytes += segmentBytes;
    this.#directoryChanged = true;
    this.#diskFullSince = -Infinity;
    return { number, path: file, size: segmentBytes, end: 0, fd };
  }

  /**
   * Deletes kept segments that are in the way of another one. Throws unless two more fit on the disk: its last free bytes are
   * left to other programs, such as Postgres.
   */
  #makeRoom(): void {
    const { directory, segmentBytes, limitBytes } = this.#options;
    const underWay = this.#allocating === null ? 0 : segmentBytes;
    const room = limitBytes - this.totalBytes - underWay - segmentBytes;
    while (this.kept.bytes > room && this.kept.deleteOldest()) {
      // The next one.
    }
    for (;;) {
      const { bavail, bsize } = fs.statfsSync(directory);
      if (bavail * bsize >= 2 * segmentBytes) {
        return;
      }
      if (!this.kept.deleteOldest()) {
        throw new Error(`The disk of ${directory} is full.`);
      }
    }
  }

  #noteFailure(error: unknown): void {
    this.#diskFullSince = this.#options.now();
    this.#options.allocationFailed(error);
  }
}

/** Whether the disk is full, or what may be used of it. */
function isNoRoom(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT"].includes(
    (error as NodeJS.ErrnoException).code ?? "",
  );
}
