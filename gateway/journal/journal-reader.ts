import fs from "node:fs/promises";
import { parseLine, verifiedJson, type JournalLine } from "./journal-line.ts";
import type { JournalTail } from "./journal-tail.ts";
import type {
  JournalLog,
  JournalRow,
  Recorded,
  Started,
} from "./journal-types.ts";
import type { Segment } from "./segment.ts";
import type { Segments } from "./segments.ts";

const CHUNK_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

export interface JournalReader<Intent, Outcome> {
  read(maxRows: number): Promise<JournalRow<Intent, Outcome>[]>;
  /** Rows returned by `read` so far. */
  delivered(): number;
  committed(): number;
  /** The first `position` rows ever returned are in the ledger. */
  commit(position: number): void;
  /** Whether the reader has gone past the segment and every intent in it is in the ledger. */
  done(segment: Segment): boolean;
  /** Intents in the segment whose outcomes were not read yet, when nothing else keeps the segment; else none. */
  holding(segment: Segment): readonly Intent[];
  /** Whether every line written so far was read. */
  atEnd(): boolean;
  close(): Promise<void>;
}

/**
 * Follows the journal from the oldest line to the newest, in its files and where it has caught up in memory (`tail`), and
 * joins intents with outcomes. Only intents without an outcome so far are held.
 *
 * `recovered` is where the lines of earlier lives end: intents still open there are interrupted.
 */
export function createJournalReader<
  Intent extends Started,
  Outcome extends Recorded,
>(options: {
  readonly segments: Segments;
  readonly tail: JournalTail<Intent, Outcome>;
  readonly recovered: { readonly segment: number; readonly offset: number };
  readonly log: JournalLog;
}): JournalReader<Intent, Outcome> {
  const { segments, tail, recovered, log } = options;
  const oldest = segments.list[0]?.number ?? 0;
  const open = new Map<
    string,
    { readonly intent: Intent; readonly segment: number }
  >();
  /** Intents of each segment that are not in the ledger. */
  const uncommitted = new Map<number, number>();
  /** The segment of the intent of each row delivered and not committed, in order. */
  const delivering: number[] = [];
  let interrupted: { readonly intent: Intent; readonly segment: number }[] = [];
  let recoveredAt = 0;
  let beyondRecovered = false;
  let lastAt = 0;
  let delivered = 0;

  let segment = segments.list[0] as Segment;
  let file: fs.FileHandle | null = null;
  /** Where the next line begins. */
  let offset = 0;
  let chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  let chunkOffset = 0;
  let chunkBytes = 0;

  function count(number: number, change: number): void {
    uncommitted.set(number, (uncommitted.get(number) ?? 0) + change);
  }

  function deliver(
    rows: JournalRow<Intent, Outcome>[],
    row: JournalRow<Intent, Outcome>,
    intentSegment: number,
  ): void {
    rows.push(row);
    delivering.push(intentSegment);
    delivered++;
  }

  /** Lines up to here may be read now. */
  function readableEnd(): number {
    return !beyondRecovered && segment.number === recovered.segment
      ? recovered.offset
      : segment.end;
  }

  /** At the begin of another life of the process: nothing that is open can still get an outcome. */
  function interruptOpen(): void {
    recoveredAt = lastAt;
    interrupted = [...open.values()];
    open.clear();
  }

  /** At the end of what is readable in this segment: goes on to what follows; false at the end of the journal. */
  async function goOn(): Promise<boolean> {
    if (!beyondRecovered && segment.number === recovered.segment) {
      beyondRecovered = true;
      interruptOpen();
      return true;
    }
    if (segment === segments.active()) {
      return false;
    }
    const next = segments.list.find(({ number }) => number > segment.number);
    if (next === undefined) {
      return false;
    }
    await file?.close();
    file = null;
    segment = next;
    offset = chunkOffset = chunkBytes = 0;
    return true;
  }

  /** Where in `chunk` the newline of the next line stands; -1 when it is not there. */
  function newlineInChunk(): number {
    const start = offset - chunkOffset;
    if (start >= chunkBytes) {
      return -1;
    }
    const newline = chunk.indexOf(NEWLINE, start);
    return newline < chunkBytes ? newline : -1;
  }

  /** Reads on from `offset`; false when the rest of the segment holds no whole line. */
  async function fill(end: number): Promise<boolean> {
    do {
      if (offset === chunkOffset && chunkBytes === chunk.length) {
        // A line longer than the chunk.
        chunk = Buffer.allocUnsafe(chunk.length * 2);
      }
      file ??= await fs.open(segment.path, "r");
      const wanted = Math.min(chunk.length, end - offset);
      const { bytesRead } = await file.read(chunk, 0, wanted, offset);
      chunkOffset = offset;
      chunkBytes = bytesRead;
      if (newlineInChunk() !== -1) {
        return true;
      }
    } while (chunkBytes === chunk.length && offset + chunkBytes < end);
    return false;
  }

  function take(
    line: JournalLine<Intent, Outcome>,
    rows: JournalRow<Intent, Outcome>[],
  ): void {
    if ("intent" in line) {
      const { intent } = line;
      // Written once more to free an old segment.
      const earlier = open.get(intent.id);
      if (earlier !== undefined) {
        count(earlier.segment, -1);
      }
      open.set(intent.id, { intent, segment: segment.number });
      count(segment.number, 1);
    } else if ("outcome" in line) {
      const { outcome } = line;
      const answered = open.get(outcome.id);
      if (answered !== undefined) {
        open.delete(outcome.id);
        const { intent } = answered;
        deliver(rows, { intent, outcome }, answered.segment);
      } else if (line.segment >= oldest) {
        log.error(
          { id: outcome.id, segment: line.segment },
          "The journal holds the outcome of a call whose intent was damaged: this call is not in the ledger.",
        );
      }
      // Else its intent went with a segment of which everything was in the ledger.
    } else {
      interruptOpen();
    }
    lastAt = line.at;
  }

  function reportDamage(from: number, to: number): void {
    // What earlier lives left was reported when the journal was opened.
    if (!beyondRecovered) {
      return;
    }
    log.error(
      { segment: segment.number, offset: from, bytes: to - from },
      "A line of the journal is damaged: the call in it is not in the ledger.",
    );
  }

  function takeLine(
    newline: number,
    rows: JournalRow<Intent, Outcome>[],
  ): void {
    const from = offset;
    const json = verifiedJson(chunk, from - chunkOffset, newline);
    offset = chunkOffset + newline + 1;
    if (json === null) {
      reportDamage(from, offset);
    } else {
      take(parseLine(json), rows);
    }
  }

  /** Takes the next line as it is in memory, if it is. */
  function takeFromTail(rows: JournalRow<Intent, Outcome>[]): boolean {
    if (!beyondRecovered) {
      return false;
    }
    const next = tail.take(segment.number, offset);
    if (next === null) {
      return false;
    }
    offset = next.end;
    take(next.line, rows);
    return true;
  }

  /** Reads one line, or goes on to the next segment; false at the end of the journal. */
  async function readOn(): Promise<boolean> {
    const end = readableEnd();
    if (offset >= end) {
      return goOn();
    }
    if (await fill(end)) {
      return true;
    }
    reportDamage(offset, end);
    offset = end;
    return true;
  }

  function uncommittedIn(number: number): number {
    return uncommitted.get(number) ?? 0;
  }

  return {
    async read(maxRows) {
      const rows: JournalRow<Intent, Outcome>[] = [];
      try {
        while (rows.length < maxRows) {
          const next = interrupted.shift();
          if (next !== undefined) {
            const { intent } = next;
            deliver(rows, { intent, outcome: null, recoveredAt }, next.segment);
            continue;
          }
          if (takeFromTail(rows)) {
            continue;
          }
          const newline = newlineInChunk();
          if (newline !== -1) {
            takeLine(newline, rows);
          } else if (!(await readOn())) {
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
    },
    delivered: () => delivered,
    committed: () => delivered - delivering.length,
    commit(position) {
      const rows = position - (delivered - delivering.length);
      if (rows > delivering.length) {
        throw new RangeError(
          `Position ${position} is beyond the ${delivered} rows read.`,
        );
      }
      if (rows <= 0) {
        return;
      }
      for (const number of delivering.splice(0, rows)) {
        count(number, -1);
      }
    },
    done(of) {
      if (of.number >= segment.number || uncommittedIn(of.number) > 0) {
        return false;
      }
      uncommitted.delete(of.number);
      return true;
    },
    holding(of) {
      if (of.number >= segment.number) {
        return [];
      }
      const intents = [];
      for (const held of open.values()) {
        if (held.segment === of.number) {
          intents.push(held.intent);
        }
      }
      return intents.length === uncommittedIn(of.number) ? intents : [];
    },
    atEnd: () =>
      segment === segments.active() &&
      beyondRecovered &&
      offset >= segment.end &&
      interrupted.length === 0,
    async close() {
      await file?.close();
      file = null;
    },
  };
}
