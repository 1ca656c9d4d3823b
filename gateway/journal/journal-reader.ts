import { JournalJoin } from "./journal-join.ts";
import { parseLine, type JournalLine } from "./journal-line.ts";
import { compareMarks } from "./journal-mark.ts";
import type { JournalTail } from "./journal-tail.ts";
import type {
  JournalLog,
  JournalMark,
  JournalRow,
  Recorded,
  Started,
} from "./journal-types.ts";
import { SegmentCursor } from "./segment-cursor.ts";
import type { Segment } from "./segment.ts";
import type { Segments } from "./segments.ts";

type Place = Pick<JournalMark, "segment" | "offset">;

interface ReaderOptions<Intent, Outcome> {
  readonly segments: Pick<Segments, "list" | "active">;
  readonly tail: JournalTail<Intent, Outcome>;
  /** Where the lines of previous processes end: intents still open there are interrupted. */
  readonly recovered: { readonly segment: number; readonly offset: number };
  /** Rows before it are left out; null: none. */
  readonly start: JournalMark | null;
  readonly log: JournalLog;
}

/**
 * Follows the journal from the oldest line to the newest, in its files and, where it has caught up, in memory (`tail`), and
 * joins intents with outcomes.
 */
export class JournalReader<Intent extends Started, Outcome extends Recorded> {
  readonly #options: ReaderOptions<Intent, Outcome>;
  readonly #cursor: SegmentCursor;
  readonly #join: JournalJoin<Intent, Outcome>;
  #beyondRecovered = false;
  /** Where the interrupted calls that are being delivered became so: their line counts as read once all are delivered. */
  #interruptedAt: Place | null = null;

  constructor(options: ReaderOptions<Intent, Outcome>) {
    const { list, active } = options.segments;
    const { start } = options;
    const oldest =
      list.find(({ number }) => number >= (start?.from ?? 0)) ?? active();
    this.#options = options;
    this.#cursor = new SegmentCursor(oldest);
    this.#join = new JournalJoin(options.log, oldest.number);
  }

  async read(maxRows: number): Promise<JournalRow<Intent, Outcome>[]> {
    const rows: JournalRow<Intent, Outcome>[] = [];
    try {
      while (rows.length < maxRows) {
        if (this.#join.deliverInterrupted(rows) || this.#takeFromTail(rows)) {
          continue;
        }
        const newline = this.#cursor.newlineInChunk();
        if (newline !== -1) {
          this.#takeLine(newline, rows);
        } else if (!(await this.#advance())) {
          break;
        }
      }
    } catch (error) {
      // Rows read before the failure count as delivered; the next call meets it again.
      if (rows.length === 0) {
        throw error;
      }
    }
    return rows;
  }

  /** The end of what `read` returned so far. */
  mark(): JournalMark {
    const { segment, offset } =
      this.#join.hasInterrupted && this.#interruptedAt !== null
        ? this.#interruptedAt
        : this.#place();
    const from = Math.min(segment, this.#join.oldestUndelivered());
    return { segment, offset, from };
  }

  /** Rows returned by `read` so far. */
  delivered(): number {
    return this.#join.delivered;
  }

  committed(): number {
    return this.#join.committed;
  }

  /** The first `position` rows ever returned are in the ledger. */
  commit(position: number): void {
    this.#join.commit(position);
  }

  /** Whether the reader is past the segment and every intent in it is in the ledger. */
  done(segment: Segment): boolean {
    const { number } = segment;
    if (
      number >= this.#cursor.segment.number ||
      this.#join.uncommittedIn(number) > 0
    ) {
      return false;
    }
    this.#join.forget(number);
    return true;
  }

  /** Intents of the segment without an outcome so far, when nothing else keeps the segment; else none. */
  holding({ number }: Segment): readonly Intent[] {
    if (number >= this.#cursor.segment.number) {
      return [];
    }
    const intents = this.#join.openIn(number);
    return intents.length === this.#join.uncommittedIn(number) ? intents : [];
  }

  /** Whether every line written so far was read. */
  atEnd(): boolean {
    const { segment, offset } = this.#cursor;
    return (
      segment === this.#options.segments.active() &&
      this.#beyondRecovered &&
      offset >= segment.end &&
      !this.#join.hasInterrupted
    );
  }

  async close(): Promise<void> {
    await this.#cursor.close();
  }

  /** Takes the next line from memory, if it is there. */
  #takeFromTail(rows: JournalRow<Intent, Outcome>[]): boolean {
    if (!this.#beyondRecovered) {
      return false;
    }
    const start = this.#place();
    const next = this.#options.tail.take(start.segment, start.offset);
    if (next === null) {
      return false;
    }
    this.#cursor.skipTo(next.end);
    this.#joinLine(next.line, start, rows);
    return true;
  }

  #takeLine(newline: number, rows: JournalRow<Intent, Outcome>[]): void {
    const start = this.#place();
    const json = this.#cursor.takeLine(newline);
    if (json === null) {
      this.#reportDamage(start.offset, this.#cursor.offset);
    } else {
      this.#joinLine(parseLine(json), start, rows);
    }
  }

  #joinLine(
    line: JournalLine<Intent, Outcome>,
    start: Place,
    rows: JournalRow<Intent, Outcome>[],
  ): void {
    this.#enter(start);
    if ("opened" in line) {
      this.#interruptedAt = start;
    }
    this.#join.take(line, start.segment, rows);
  }

  /** Rows that are completed at this place are left out, or delivered. */
  #enter(place: Place): void {
    const { start } = this.#options;
    this.#join.skipping = start !== null && compareMarks(place, start) < 0;
  }

  #place(): Place {
    const { segment, offset } = this.#cursor;
    return { segment: segment.number, offset };
  }

  /** Reads more of the file, or continues in the next segment; false at the end of the journal. */
  async #advance(): Promise<boolean> {
    const end = this.#readableEnd();
    if (this.#cursor.offset >= end) {
      return this.#nextSegment();
    }
    if (await this.#fill(end)) {
      return true;
    }
    this.#reportDamage(this.#cursor.offset, end);
    this.#cursor.skipTo(end);
    return true;
  }

  /** False when no whole line is left, or the segment was deleted. */
  async #fill(end: number): Promise<boolean> {
    try {
      return await this.#cursor.fill(end);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") {
        throw error;
      }
      return false;
    }
  }

  /** Lines up to here may be read now. */
  #readableEnd(): number {
    return this.#isAtRecovered()
      ? this.#options.recovered.offset
      : this.#cursor.segment.end;
  }

  #isAtRecovered(): boolean {
    const { recovered } = this.#options;
    return (
      !this.#beyondRecovered &&
      this.#cursor.segment.number === recovered.segment
    );
  }

  /** At the end of what is readable in a segment: continues with what follows; false at the end of the journal. */
  async #nextSegment(): Promise<boolean> {
    if (this.#isAtRecovered()) {
      this.#beyondRecovered = true;
      this.#interruptedAt = this.#place();
      this.#enter(this.#interruptedAt);
      this.#join.interruptOpen();
      return true;
    }
    const { segments } = this.#options;
    const { segment } = this.#cursor;
    if (segment === segments.active()) {
      return false;
    }
    const next = segments.list.find(({ number }) => number > segment.number);
    if (next === undefined) {
      return false;
    }
    await this.#cursor.moveTo(next);
    return true;
  }

  #reportDamage(from: number, to: number): void {
    // Damage left by previous processes was reported when the journal was opened.
    if (!this.#beyondRecovered) {
      return;
    }
    this.#options.log.error(
      {
        segment: this.#cursor.segment.number,
        offset: from,
        bytes: to - from,
      },
      "A journal line is damaged: its call is missing from the ledger.",
    );
  }
}
