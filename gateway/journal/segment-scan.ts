import { lineKind, verifiedJson } from "./journal-line.ts";
import { endOfContent } from "./segment.ts";

interface ByteRange {
  readonly offset: number;
  readonly bytes: number;
}

export interface SegmentScan {
  /** The offset after the last good line. */
  readonly end: number;
  /** From the given offset on. */
  readonly intents: number;
  /** Bad lines with a good one after them: damage, not a torn end. */
  readonly damaged: readonly ByteRange[];
  /** Bytes after the last good line that form no line; 0 bytes after a clean end. */
  readonly torn: ByteRange;
}

const NEWLINE = 0x0a;

/** Checks every line of a segment, without parsing it; counts intents from an offset on. */
export function scanSegment(bytes: Buffer, countFrom: number): SegmentScan {
  let end = 0;
  let intents = 0;
  const damaged: ByteRange[] = [];
  let bad: ByteRange[] = [];
  for (let offset = 0; offset < bytes.length;) {
    const newline = bytes.indexOf(NEWLINE, offset);
    if (newline === -1) {
      break;
    }
    const json = verifiedJson(bytes, offset, newline);
    if (json === null) {
      bad.push({ offset, bytes: newline + 1 - offset });
    } else {
      damaged.push(...bad);
      bad = [];
      if (offset >= countFrom && lineKind(json) === "intent") {
        intents++;
      }
      end = newline + 1;
    }
    offset = newline + 1;
  }
  return {
    end,
    intents,
    damaged,
    torn: { offset: end, bytes: endOfContent(bytes, end) - end },
  };
}
