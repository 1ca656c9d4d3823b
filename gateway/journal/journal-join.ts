import type { JournalLine } from "./journal-line.ts";
import type {
  JournalLog,
  JournalRow,
  Recorded,
  Started,
} from "./journal-types.ts";

interface OpenIntent<Intent> {
  readonly intent: Intent;
  readonly segment: number;
}

/**
 * Joins the intents of the journal with their outcomes, and counts for each segment the intents that are not in the
 * ledger. Only intents without an outcome so far are kept.
 */
export class JournalJoin<Intent extends Started, Outcome extends Recorded> {
  readonly #log: JournalLog;
  /** Number of the oldest segment when the journal was opened. */
  readonly #oldest: number;
  /** Intents without an outcome so far, by call id. */
  readonly #open = new Map<string, OpenIntent<Intent>>();
  /** Intents of each segment that are not in the ledger. */
  readonly #uncommitted = new Map<number, number>();
  /** The segment of the intent of each row delivered and not committed, in order. */
  readonly #delivering: number[] = [];
  #interrupted: OpenIntent<Intent>[] = [];
  #recoveredAt = 0;
  #lastAt = 0;
  #delivered = 0;
  /** Rows that lines complete now are in the ledger already, and are left out. */
  skipping = false;

  constructor(log: JournalLog, oldest: number) {
    this.#log = log;
    this.#oldest = oldest;
  }

  /** Rows delivered so far. */
  get delivered(): number {
    return this.#delivered;
  }

  get committed(): number {
    return this.#delivered - this.#delivering.length;
  }

  get hasInterrupted(): boolean {
    return this.#interrupted.length > 0;
  }

  /** Takes a line of a segment; an outcome becomes a row. */
  take(
    line: JournalLine<Intent, Outcome>,
    segment: number,
    rows: JournalRow<Intent, Outcome>[],
  ): void {
    if ("intent" in line) {
      this.#takeIntent(line.intent, segment);
    } else if ("outcome" in line) {
      this.#takeOutcome(line.outcome, line.segment, rows);
    } else {
      this.interruptOpen();
    }
    this.#lastAt = line.at;
  }

  /** At the start of another process: what is open can no longer get an outcome. */
  interruptOpen(): void {
    this.#recoveredAt = this.#lastAt;
    const open = [...this.#open.values()];
    this.#open.clear();
    if (!this.skipping) {
      this.#interrupted = open;
      return;
    }
    for (const { segment } of open) {
      this.#count(segment, -1);
    }
  }

  /** Delivers the next interrupted call; false when there is none. */
  deliverInterrupted(rows: JournalRow<Intent, Outcome>[]): boolean {
    const next = this.#interrupted.shift();
    if (next === undefined) {
      return false;
    }
    const { intent } = next;
    const recoveredAt = this.#recoveredAt;
    this.#deliver(rows, { intent, outcome: null, recoveredAt }, next.segment);
    return true;
  }

  /** The first `position` rows ever delivered are in the ledger. */
  commit(position: number): void {
    const rows = position - this.committed;
    if (rows > this.#delivering.length) {
      throw new RangeError(
        `Position ${position} is beyond the ${this.#delivered} rows read.`,
      );
    }
    if (rows <= 0) {
      return;
    }
    for (const number of this.#delivering.splice(0, rows)) {
      this.#count(number, -1);
    }
  }

  /** Intents of a segment that are not in the ledger. */
  uncommittedIn(segment: number): number {
    return this.#uncommitted.get(segment) ?? 0;
  }

  openIn(segment: number): Intent[] {
    const intents = [];
    for (const open of this.#open.values()) {
      if (open.segment === segment) {
        intents.push(open.intent);
      }
    }
    return intents;
  }

  /** The oldest segment with an intent that was not delivered as a row; Infinity: none has one. */
  oldestUndelivered(): number {
    let oldest = Infinity;
    for (const { segment } of this.#open.values()) {
      oldest = Math.min(oldest, segment);
    }
    for (const { segment } of this.#interrupted) {
      oldest = Math.min(oldest, segment);
    }
    return oldest;
  }

  /** The segment is about to be deleted. */
  forget(segment: number): void {
    this.#uncommitted.delete(segment);
  }

  #takeIntent(intent: Intent, segment: number): void {
    // Present when the intent was amended, or written again to release an old segment.
    const earlier = this.#open.get(intent.id);
    if (earlier !== undefined) {
      this.#count(earlier.segment, -1);
    }
    this.#open.set(intent.id, { intent, segment });
    this.#count(segment, 1);
  }

  #takeOutcome(
    outcome: Outcome,
    intentSegment: number,
    rows: JournalRow<Intent, Outcome>[],
  ): void {
    const answered = this.#open.get(outcome.id);
    if (answered !== undefined) {
      this.#open.delete(outcome.id);
      const { intent } = answered;
      if (this.skipping) {
        this.#count(answered.segment, -1);
      } else {
        this.#deliver(rows, { intent, outcome }, answered.segment);
      }
    } else if (intentSegment >= this.#oldest) {
      this.#log.error(
        { id: outcome.id, segment: intentSegment },
        "The intent of a call in the journal is damaged: the call is missing from the ledger.",
      );
    }
    // Else the intent was deleted with a segment that was entirely in the ledger.
  }

  #deliver(
    rows: JournalRow<Intent, Outcome>[],
    row: JournalRow<Intent, Outcome>,
    intentSegment: number,
  ): void {
    rows.push(row);
    this.#delivering.push(intentSegment);
    this.#delivered++;
  }

  #count(segment: number, change: number): void {
    this.#uncommitted.set(segment, this.uncommittedIn(segment) + change);
  }
}
