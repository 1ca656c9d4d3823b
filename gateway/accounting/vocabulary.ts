import { readFile } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/**
 * The tokens of an encoding, by their bytes. In flat arrays: as 200,000 strings in a map they would take ten times the
 * memory, and garbage collection would look at each of them.
 */
export interface Vocabulary {
  /** The rank of the token that these bytes are; -1: they are none. */
  rankOf(bytes: Uint8Array, start: number, end: number): number;
}

/** Tokens read before other work has its turn. */
const AT_ONCE = 10_000;
const NEWLINE = 0x0a;
const SPACE = 0x20;
const ZERO = 0x30;
const PADDING = 0x3d;
const ALPHABET =
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const SIX_BITS = new Uint8Array(128);
for (let value = 0; value < ALPHABET.length; value++)
  SIX_BITS[ALPHABET.charCodeAt(value)] = value;

/** Reads the vocabulary that `gpt-tokenizer` brings for an encoding: a line for each token, `<base64> <rank>`, in order. */
export async function readVocabulary(encoding: string): Promise<Vocabulary> {
  const file = await readFile(
    fileURLToPath(
      import.meta.resolve(`gpt-tokenizer/data/${encoding}.tiktoken`),
    ),
  );
  let tokens = 0;
  for (const byte of file) if (byte === NEWLINE) tokens++;
  if (file.at(-1) !== NEWLINE) tokens++;

  const bytes = new Uint8Array(file.length);
  const starts = new Uint32Array(tokens + 1);
  /** Ranks + 1, by hash; the next free slot where another token has it. At most half full. */
  const slots = new Int32Array(2 ** Math.ceil(Math.log2(tokens * 2)));
  let at = 0;
  let length = 0;
  for (let rank = 0; rank < tokens; rank++) {
    if (rank % AT_ONCE === 0) await nextTurn();
    let bits = 0;
    let held = 0;
    for (; file[at] !== SPACE; at++) {
      const character = file[at] ?? PADDING;
      if (character === PADDING) continue;
      bits = (bits << 6) | (SIX_BITS[character] ?? 0);
      held += 6;
      if (held < 8) continue;
      held -= 8;
      bytes[length++] = bits >> held;
    }
    let written = 0;
    for (at++; at < file.length && file[at] !== NEWLINE; at++)
      written = written * 10 + (file[at] ?? ZERO) - ZERO;
    at++;
    if (written !== rank)
      throw new Error(`The vocabulary ${encoding} has a gap at ${rank}.`);
    starts[rank + 1] = length;
    let slot = slotOf(bytes, starts[rank] ?? 0, length, slots.length);
    while (slots[slot] !== 0) slot = (slot + 1) % slots.length;
    slots[slot] = rank + 1;
  }
  const kept = bytes.slice(0, length);

  return {
    rankOf(piece, start, end) {
      let slot = slotOf(piece, start, end, slots.length);
      for (;;) {
        const rank = (slots[slot] ?? 0) - 1;
        if (rank < 0) return -1;
        const from = starts[rank] ?? 0;
        if ((starts[rank + 1] ?? 0) - from === end - start) {
          let same = 0;
          while (
            start + same < end &&
            kept[from + same] === piece[start + same]
          )
            same++;
          if (start + same === end) return rank;
        }
        slot = (slot + 1) % slots.length;
      }
    },
  };
}

/** FNV-1a; `slots` is a power of two. */
function slotOf(
  bytes: Uint8Array,
  start: number,
  end: number,
  slots: number,
): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++)
    hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
  return (hash ^ (hash >>> 15)) & (slots - 1);
}
