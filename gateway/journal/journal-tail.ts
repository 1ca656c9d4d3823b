import type { JournalLine } from "./journal-line.ts";

/**
 * The newest lines of the journal, as they were before they were written: who has read everything up to them need not
 * read the files. The files stay the truth; what is not here is read there.
 */
export interface JournalTail<Intent, Outcome> {
  /** A line that was written at `[offset, end)` of a segment. Lines come in their order, none left out. */
  add(
    segment: number,
    offset: number,
    end: number,
    line: JournalLine<Intent, Outcome>,
  ): void;
  /** The line that begins there, with its end; it is then forgotten. null: it is only in the file. */
  take(
    segment: number,
    offset: number,
  ): Readonly<{ end: number; line: JournalLine<Intent, Outcome> }> | null;
}

/** A drain that does not come through for long must not cost memory: when there are `mostLines`, they go. */
export function createJournalTail<Intent, Outcome>(
  mostLines: number,
): JournalTail<Intent, Outcome> {
  interface Entry {
    readonly segment: number;
    readonly offset: number;
    readonly end: number;
    readonly line: JournalLine<Intent, Outcome>;
  }
  let entries: Entry[] = [];
  /** Of the oldest entry that was not taken. */
  let first = 0;

  return {
    add(segment, offset, end, line) {
      if (first === entries.length || entries.length - first >= mostLines) {
        entries = [];
        first = 0;
      }
      if (mostLines > 0) {
        entries.push({ segment, offset, end, line });
      }
    },
    take(segment, offset) {
      const entry = entries[first];
      if (entry?.segment !== segment || entry.offset !== offset) {
        return null;
      }
      first++;
      return entry;
    },
  };
}
