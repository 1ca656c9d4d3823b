import type { JournalLine } from "./journal-line.ts";

interface Entry<Intent, Outcome> {
  readonly segment: number;
  readonly offset: number;
  readonly end: number;
  readonly line: JournalLine<Intent, Outcome>;
}

/**
 * The newest lines of the journal, as they were before they were written: a reader that keeps up need not read the files.
 * The files stay the truth; lines that are not here are read there. When the drain falls behind by `maxLines`, all lines
 * are dropped from memory.
 */
export class JournalTail<Intent, Outcome> {
  readonly #maxLines: number;
  #entries: Entry<Intent, Outcome>[] = [];
  /** Index of the oldest entry that was not taken. */
  #first = 0;

  constructor(maxLines: number) {
    this.#maxLines = maxLines;
  }

  /** A line that was written at `[offset, end)` of a segment. Lines come in order, without gaps. */
  add(
    segment: number,
    offset: number,
    end: number,
    line: JournalLine<Intent, Outcome>,
  ): void {
    if (
      this.#first === this.#entries.length ||
      this.#entries.length - this.#first >= this.#maxLines
    ) {
      this.#entries = [];
      this.#first = 0;
    }
    if (this.#maxLines > 0) {
      this.#entries.push({ segment, offset, end, line });
    }
  }

  /** Removes and returns the line that starts there, with its end. null: it is only in the file. */
  take(
    segment: number,
    offset: number,
  ): Readonly<{ end: number; line: JournalLine<Intent, Outcome> }> | null {
    const entry = this.#entries[this.#first];
    if (entry?.segment !== segment || entry.offset !== offset) {
      return null;
    }
    this.#first++;
    return entry;
  }
}
