// Finds the ends of JSON values in bytes without making strings of them: a document's `data` may be 50 MB,
// and it is stored exactly as received. Every byte is checked, so accepted bytes are valid JSON.

/** The text is not JSON. */
export const INVALID = -1;
/** The text ends before the value does: more bytes are needed. */
export const INCOMPLETE = -2;
/** More than MAX_MEMBERS members were to be collected. */
export const TOO_MANY_MEMBERS = -3;
/** A collected member may take ten times its bytes. LiveSync's documents have about ten members. */
export const MAX_MEMBERS = 100_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const MAX_DEPTH = 2000;

/** One member of an object: the ends of its key (quotes included) and of its value. */
export interface Member {
  readonly keyStart: number;
  readonly keyEnd: number;
  readonly valueStart: number;
  readonly valueEnd: number;
}

/** Position of the first byte that is not white space. */
export function skipSpace(bytes: Uint8Array, at: number): number {
  for (;;) {
    const byte = bytes[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) {
      return at;
    }
    at += 1;
  }
}

/** End of the value that starts at `at`, or INVALID or INCOMPLETE. `final` means that no more bytes will follow. */
export function scanValue(
  bytes: Uint8Array,
  at: number,
  final: boolean,
  depth = 0,
): number {
  const byte = bytes[at];
  switch (byte) {
    case undefined:
      return final ? INVALID : INCOMPLETE;
    case QUOTE:
      return scanString(bytes, at, final);
    case 0x7b: // {
      return scanObject(bytes, at, final, depth);
    case 0x5b: // [
      return scanArray(bytes, at, final, depth);
    case 0x74: // t
      return scanWord(bytes, at, "true", final);
    case 0x66: // f
      return scanWord(bytes, at, "false", final);
    case 0x6e: // n
      return scanWord(bytes, at, "null", final);
    default:
      return scanNumber(bytes, at, final);
  }
}

/** The members of the object that starts at `at`, collected into `members`; its end, or INVALID, INCOMPLETE or TOO_MANY_MEMBERS. */
export function scanObject(
  bytes: Uint8Array,
  at: number,
  final: boolean,
  depth: number,
  members?: Member[],
): number {
  if (depth > MAX_DEPTH) {
    return INVALID;
  }
  const missing = final ? INVALID : INCOMPLETE;
  at = skipSpace(bytes, at + 1);
  if (bytes[at] === 0x7d) {
    return at + 1;
  }
  for (;;) {
    if (at >= bytes.length) {
      return missing;
    }
    if (bytes[at] !== QUOTE) {
      return INVALID;
    }
    const keyStart = at;
    const keyEnd = scanString(bytes, at, final);
    if (keyEnd < 0) {
      return keyEnd;
    }
    at = skipSpace(bytes, keyEnd);
    if (at >= bytes.length) {
      return missing;
    }
    if (bytes[at] !== COLON) {
      return INVALID;
    }
    const valueStart = skipSpace(bytes, at + 1);
    const valueEnd = scanValue(bytes, valueStart, final, depth + 1);
    if (valueEnd < 0) {
      return valueEnd;
    }
    const collected = members?.push({ keyStart, keyEnd, valueStart, valueEnd });
    if (collected !== undefined && collected > MAX_MEMBERS) {
      return TOO_MANY_MEMBERS;
    }
    at = skipSpace(bytes, valueEnd);
    if (at >= bytes.length) {
      return missing;
    }
    if (bytes[at] === 0x7d) {
      return at + 1;
    }
    if (bytes[at] !== COMMA) {
      return INVALID;
    }
    at = skipSpace(bytes, at + 1);
  }
}

function scanArray(
  bytes: Uint8Array,
  at: number,
  final: boolean,
  depth: number,
): number {
  if (depth > MAX_DEPTH) {
    return INVALID;
  }
  const missing = final ? INVALID : INCOMPLETE;
  at = skipSpace(bytes, at + 1);
  if (bytes[at] === 0x5d) {
    return at + 1;
  }
  for (;;) {
    const end = scanValue(bytes, at, final, depth + 1);
    if (end < 0) {
      return end;
    }
    at = skipSpace(bytes, end);
    if (at >= bytes.length) {
      return missing;
    }
    if (bytes[at] === 0x5d) {
      return at + 1;
    }
    if (bytes[at] !== COMMA) {
      return INVALID;
    }
    at = skipSpace(bytes, at + 1);
  }
}

function scanString(bytes: Uint8Array, at: number, final: boolean): number {
  const length = bytes.length;
  at += 1;
  while (at < length) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      return at + 1;
    }
    if (byte < 0x20) {
      return INVALID;
    }
    if (byte !== BACKSLASH) {
      at += 1;
      continue;
    }
    const escape = bytes[at + 1];
    if (escape === undefined) {
      break;
    }
    if (escape !== 0x75) {
      // " \ / b f n r t
      if (!SIMPLE_ESCAPES.has(escape)) {
        return INVALID;
      }
      at += 2;
      continue;
    }
    if (at + 6 > length) {
      break;
    }
    const unit = hexUnit(bytes, at + 2);
    if (unit < 0 || (unit >= 0xdc00 && unit <= 0xdfff)) {
      return INVALID;
    }
    at += 6;
    if (unit < 0xd800 || unit > 0xdbff) {
      continue;
    }
    // Half of a surrogate pair: without the other half the text cannot be stored as UTF-8.
    if (at + 6 > length) {
      break;
    }
    if (bytes[at] !== BACKSLASH || bytes[at + 1] !== 0x75) {
      return INVALID;
    }
    const second = hexUnit(bytes, at + 2);
    if (second < 0xdc00 || second > 0xdfff) {
      return INVALID;
    }
    at += 6;
  }
  return final ? INVALID : INCOMPLETE;
}

const SIMPLE_ESCAPES = new Set(Buffer.from('"\\/bfnrt'));

function hexUnit(bytes: Uint8Array, at: number): number {
  let unit = 0;
  for (let index = at; index < at + 4; index += 1) {
    const byte = bytes[index]! | 0x20;
    if (byte >= 0x30 && byte <= 0x39) {
      unit = unit * 16 + byte - 0x30;
    } else if (byte >= 0x61 && byte <= 0x66) {
      unit = unit * 16 + byte - 0x57;
    } else {
      return INVALID;
    }
  }
  return unit;
}

function scanWord(
  bytes: Uint8Array,
  at: number,
  word: string,
  final: boolean,
): number {
  for (let index = 0; index < word.length; index += 1) {
    const byte = bytes[at + index];
    if (byte === undefined) {
      return final ? INVALID : INCOMPLETE;
    }
    if (byte !== word.charCodeAt(index)) {
      return INVALID;
    }
  }
  return at + word.length;
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

function scanNumber(bytes: Uint8Array, at: number, final: boolean): number {
  let end = at;
  for (;;) {
    const byte = bytes[end];
    if (byte === undefined) {
      if (!final) {
        return INCOMPLETE;
      }
      break;
    }
    const digit = byte >= 0x30 && byte <= 0x39;
    // + - . E e
    if (
      !digit &&
      byte !== 0x2b &&
      byte !== 0x2d &&
      byte !== 0x2e &&
      (byte | 0x20) !== 0x65
    ) {
      break;
    }
    end += 1;
  }
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + at, end - at);
  return NUMBER.test(text.toString("latin1")) ? end : INVALID;
}
