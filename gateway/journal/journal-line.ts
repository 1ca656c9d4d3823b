import { crc32 } from "node:zlib";

/**
 * One line of the journal: `<CRC-32 of the JSON's bytes, 8 hex digits> <JSON>\n`.
 *
 * The JSON is an envelope around a record. `at` (ms since the epoch) is the time of writing; an outcome names the
 * segment of its intent, to distinguish an intent in a deleted segment from a damaged one.
 * `opened` precedes the first intent of each process: intents open at that point are interrupted.
 */
export type JournalLine<Intent, Outcome> =
  | { readonly intent: Intent; readonly at: number }
  | { readonly outcome: Outcome; readonly segment: number; readonly at: number }
  | { readonly opened: string; readonly at: number };

type LineKind = "intent" | "outcome" | "opened";

const CHECKSUM_BYTES = 8;
/** Checksum, space and newline. */
export const FRAME_BYTES = CHECKSUM_BYTES + 2;

const NEWLINE = 0x0a;
const SPACE = 0x20;
const HEX = Buffer.from("0123456789abcdef");

/** Encodes lines into one buffer that is used again for each: the bytes are valid until the next `encode`. */
export function createLineEncoder(): {
  /** A line, behind the first `after` bytes of the previous one. */
  encode(json: string, after?: number): Buffer;
} {
  let buffer = Buffer.allocUnsafe(64 * 1024);
  return {
    encode(json, after = 0) {
      // A UTF-16 unit takes at most three bytes in UTF-8.
      const most = after + json.length * 3 + FRAME_BYTES;
      if (most > buffer.length) {
        const larger = Buffer.allocUnsafe(most);
        buffer.copy(larger, 0, 0, after);
        buffer = larger;
      }
      const start = after + CHECKSUM_BYTES + 1;
      const end = start + buffer.write(json, start, "utf8");
      writeHex(buffer, after, crc32(buffer.subarray(start, end)));
      buffer[start - 1] = SPACE;
      buffer[end] = NEWLINE;
      return buffer.subarray(0, end + 1);
    },
  };
}

/**
 * The JSON bytes of the line in `bytes[start, end)` (without its newline), or null when its checksum is wrong.
 * Zero bytes before the line (a page lost in a power cut) are skipped.
 */
export function verifiedJson(
  bytes: Buffer,
  start: number,
  end: number,
): Buffer | null {
  let from = start;
  while (from < end && bytes[from] === 0) {
    from++;
  }
  if (end - from <= FRAME_BYTES - 1) {
    return null;
  }
  if (bytes[from + CHECKSUM_BYTES] !== SPACE) {
    return null;
  }
  const json = bytes.subarray(from + CHECKSUM_BYTES + 1, end);
  return readHex(bytes, from) === crc32(json) ? json : null;
}

/** The kind of a verified line, from its first characters (`{"intent"`, `{"outcome"`, `{"opened"`), without parsing it. */
export function lineKind(json: Buffer): LineKind {
  if (json[2] === 0x69) {
    return "intent";
  }
  return json[3] === 0x75 ? "outcome" : "opened";
}

export function parseLine<Intent, Outcome>(
  json: Buffer,
): JournalLine<Intent, Outcome> {
  return JSON.parse(json.toString("utf8")) as JournalLine<Intent, Outcome>;
}

function writeHex(buffer: Buffer, start: number, value: number): void {
  for (let index = start + CHECKSUM_BYTES - 1; index >= start; index--) {
    buffer[index] = HEX[value & 15] ?? 0;
    value >>>= 4;
  }
}

/** The number, or -1 for anything but eight lower-case hex digits. */
function readHex(bytes: Buffer, start: number): number {
  let value = 0;
  for (let index = start; index < start + CHECKSUM_BYTES; index++) {
    const byte = bytes[index] ?? 0;
    let digit: number;
    if (byte >= 0x30 && byte <= 0x39) {
      digit = byte - 0x30;
    } else if (byte >= 0x61 && byte <= 0x66) {
      digit = byte - 0x57;
    } else {
      return -1;
    }
    value = value * 16 + digit;
  }
  return value;
}
