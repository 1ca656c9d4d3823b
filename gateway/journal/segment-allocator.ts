import fs from "node:fs";
import path from "node:path";
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
  readonly now: () => number;
  /** Called when the disk has no room for another segment. */
  readonly allocationFailed: (error: unknown) => void;
}

/** Creates the journal's files, within its limit and the room on the disk. */
export class SegmentAllocator {
  readonly #options: AllocatorOptions;
  #totalBytes: number;
  #lastNumber: number;
  #allocating: Promise<void> | null = null;
  #diskFullSince = -Infinity;
  #directoryChanged = false;

  /** `found`: the existing files, oldest first. */
  constructor(options: AllocatorOptions, found: readonly Segment[]) {
    this.#options = options;
    this.#totalBytes = found.reduce((sum, segment) => sum + segment.size, 0);
    this.#lastNumber = found.at(-1)?.number ?? 0;
  }

  /** Bytes of all files. */
  get totalBytes(): number {
    return this.#totalBytes;
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
      this.#totalBytes + underWay + segmentBytes <= limitBytes &&
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
      this.#checkDisk();
      const file = this.#unfinishedFile("burst");
      return this.#adopt(
        file,
        preallocateNow(file, this.#options.segmentBytes),
      );
    } catch (error) {
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

  async unlink(segment: Segment): Promise<void> {
    await fs.promises.rm(segment.path, { force: true });
    this.#totalBytes -= segment.size;
    this.#directoryChanged = true;
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
      this.#checkDisk();
      const file = this.#unfinishedFile("spare");
      const fd = await preallocate(file, this.#options.segmentBytes);
      onCreated(this.#adopt(file, fd));
    } catch (error) {
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
    fs.renameSync(unfinished, file);
    this.#lastNumber = number;
    this.#totalBytes += segmentBytes;
    this.#directoryChanged = true;
    this.#diskFullSince = -Infinity;
    return { number, path: file, size: segmentBytes, end: 0, fd };
  }

  /** Throws unless two more segments fit: the last free bytes of a disk are left to other programs, such as Postgres. */
  #checkDisk(): void {
    const { directory, segmentBytes } = this.#options;
    const disk = fs.statfsSync(directory);
    if (disk.bavail * disk.bsize >= 2 * segmentBytes) {
      return;
    }
    throw new Error(`The disk of ${directory} is full.`);
  }

  #noteFailure(error: unknown): void {
    this.#diskFullSince = this.#options.now();
    this.#options.allocationFailed(error);
  }
}
