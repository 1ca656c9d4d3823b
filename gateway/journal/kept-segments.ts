import fs from "node:fs";
import type { Segment } from "./segment.ts";

/** Part of the disk that kept segments leave free for other programs. */
const FREE_SHARE = 0.1;
const SWEEP_EVERY_MS = 1_000;

interface KeptSegment {
  readonly segment: Segment;
  /** When it was entirely in the ledger, in ms since the epoch. */
  readonly since: number;
  /** What was carried out of it is on the disk too. */
  deletable: boolean;
}

interface KeptSegmentsOptions {
  readonly directory: string;
  readonly keepMs: number;
  readonly now: () => number;
  readonly onDeleted: () => void;
  readonly onFailed: (segment: Segment, error: unknown) => void;
}

/** Segments that are entirely in the ledger, oldest first: kept for a time, as long as nothing else needs their room. */
export class KeptSegments {
  readonly #options: KeptSegmentsOptions;
  readonly #kept: KeptSegment[] = [];
  #sweptAt = -Infinity;

  constructor(options: KeptSegmentsOptions) {
    this.#options = options;
  }

  get list(): readonly Segment[] {
    return this.#kept.map(({ segment }) => segment);
  }

  /** Bytes of those that can be deleted. */
  get bytes(): number {
    return this.#bytesOf(true);
  }

  /** Bytes of those that cannot be deleted yet. */
  get pinnedBytes(): number {
    return this.#bytesOf(false);
  }

  /** Of a previous process: kept since its file was last touched. */
  addRecovered(segment: Segment, touchedAt: number): void {
    this.#kept.push({ segment, since: touchedAt, deletable: true });
  }

  /** Its file stays until {@link flushed}, whatever needs its room. */
  add(segment: Segment): void {
    const since = this.#options.now();
    this.#kept.push({ segment, since, deletable: false });
  }

  /** All that was written before they were added is on the disk. */
  flushed(segments: readonly Segment[]): void {
    for (const kept of this.#kept) {
      if (segments.includes(kept.segment)) {
        kept.deletable = true;
        touch(kept);
      }
    }
    this.#deleteDue();
  }

  /** Deletes those whose time is over, and the oldest while the disk is nearly full. Cheap: looks once a second. */
  sweep(): void {
    const at = performance.now();
    if (this.#kept.length > 0 && at - this.#sweptAt >= SWEEP_EVERY_MS) {
      this.#sweptAt = at;
      this.#deleteDue();
    }
  }

  /** Deletes the oldest; false if there is none that may be deleted now. */
  deleteOldest(): boolean {
    const [oldest] = this.#kept;
    if (oldest?.deletable !== true) {
      return false;
    }
    this.#kept.shift();
    try {
      fs.rmSync(oldest.segment.path, { force: true });
      this.#options.onDeleted();
    } catch (error) {
      this.#options.onFailed(oldest.segment, error);
    }
    return true;
  }

  #deleteDue(): void {
    const { keepMs, now } = this.#options;
    while (
      this.#kept[0] !== undefined &&
      (now() - this.#kept[0].since >= keepMs || this.#isDiskShort())
    ) {
      if (!this.deleteOldest()) {
        return;
      }
    }
  }

  #bytesOf(deletable: boolean): number {
    return this.#kept.reduce(
      (sum, kept) =>
        sum + (kept.deletable === deletable ? kept.segment.size : 0),
      0,
    );
  }

  #isDiskShort(): boolean {
    const { bavail, blocks } = fs.statfsSync(this.#options.directory);
    return bavail < blocks * FREE_SHARE;
  }
}

/** The next process reads from the file since when it is kept. */
function touch({ segment, since }: KeptSegment): void {
  try {
    fs.utimesSync(segment.path, since / 1_000, since / 1_000);
  } catch {
    // It counts from its last line then.
  }
}
