import {
  CL100K_TOKEN_SPLIT_REGEX,
  O200K_TOKEN_SPLIT_REGEX,
} from "gpt-tokenizer/encodingParams/constants";
import { readVocabulary, type Vocabulary } from "./vocabulary.ts";

/** OpenAI's two encodings. */
export type Encoding = "o200k_base" | "cl100k_base";

export type CountTokens = (text: string) => number;

const SPLITS: Readonly<Record<Encoding, RegExp>> = {
  o200k_base: O200K_TOKEN_SPLIT_REGEX,
  cl100k_base: CL100K_TOKEN_SPLIT_REGEX,
};

/**
 * Counts as `gpt-tokenizer` does, whose tables it reads, without creating strings or lists: this runs on
 * every call. Time is quadratic in the length of a piece that is no token.
 */
export async function loadEncoding(encoding: Encoding): Promise<CountTokens> {
  const vocabulary = await readVocabulary(encoding);
  const split = new RegExp(SPLITS[encoding]);
  const countPiece = createPieceCounter(vocabulary);
  return (text) => {
    let tokens = 0;
    let start = 0;
    split.lastIndex = 0;
    // Every character belongs to a piece, so the next one starts where this one ends.
    while (start < text.length && split.test(text)) {
      tokens += countPiece(text, start, split.lastIndex);
      start = split.lastIndex;
    }
    return tokens;
  };
}

const BYTES_OF_A_UNIT = 3;

function createPieceCounter(
  vocabulary: Vocabulary,
): (text: string, start: number, end: number) => number {
  let bytes = new Uint8Array(1_024);
  /** Where each part of the piece begins, and the rank of each part together with the next one. */
  let starts = new Int32Array(bytes.length + 1);
  let ranks = new Float64Array(bytes.length + 1);

  function rankAt(part: number, parts: number): number {
    if (part + 2 > parts) {
      return Infinity;
    }
    const rank = vocabulary.rankOf(
      bytes,
      starts[part] ?? 0,
      starts[part + 2] ?? 0,
    );
    return rank < 0 ? Infinity : rank;
  }

  /** Joins the neighbours that form the token of lowest rank until none form one. Returns the number of parts left. */
  function merge(length: number): number {
    let parts = length;
    for (let part = 0; part <= length; part++) {
      starts[part] = part;
    }
    for (let part = 0; part < length; part++) {
      ranks[part] = rankAt(part, parts);
    }
    for (;;) {
      let lowest = Infinity;
      let at = -1;
      for (let part = 0; part < parts - 1; part++) {
        const rank = ranks[part] ?? Infinity;
        if (rank >= lowest) {
          continue;
        }
        lowest = rank;
        at = part;
      }
      if (at < 0) {
        return parts;
      }
      starts.copyWithin(at + 1, at + 2, parts + 1);
      ranks.copyWithin(at, at + 1, parts);
      parts--;
      ranks[at] = rankAt(at, parts);
      if (at > 0) {
        ranks[at - 1] = rankAt(at - 1, parts);
      }
    }
  }

  return (text, start, end) => {
    const most = (end - start) * BYTES_OF_A_UNIT;
    if (most > bytes.length) {
      bytes = new Uint8Array(most);
      starts = new Int32Array(most + 1);
      ranks = new Float64Array(most + 1);
    }
    const length = writeUtf8(text, start, end, bytes);
    return vocabulary.rankOf(bytes, 0, length) >= 0 ? 1 : merge(length);
  };
}

/** For short pieces this is faster than a native call. */
function writeUtf8(
  text: string,
  start: number,
  end: number,
  bytes: Uint8Array,
): number {
  let length = 0;
  for (let at = start; at < end; at++) {
    let code = text.charCodeAt(at);
    if (code < 0x80) {
      bytes[length++] = code;
      continue;
    }
    if (code < 0x800) {
      bytes[length++] = 0xc0 | (code >> 6);
      bytes[length++] = 0x80 | (code & 0x3f);
      continue;
    }
    if (code >= 0xd800 && code <= 0xdfff) {
      const point = text.codePointAt(at) ?? 0;
      if (point > 0xffff && at + 1 < end) {
        at++;
        bytes[length++] = 0xf0 | (point >> 18);
        bytes[length++] = 0x80 | ((point >> 12) & 0x3f);
        bytes[length++] = 0x80 | ((point >> 6) & 0x3f);
        bytes[length++] = 0x80 | (point & 0x3f);
        continue;
      }
      // An unpaired surrogate, as encoders write it.
      code = 0xfffd;
    }
    bytes[length++] = 0xe0 | (code >> 12);
    bytes[length++] = 0x80 | ((code >> 6) & 0x3f);
    bytes[length++] = 0x80 | (code & 0x3f);
  }
  return length;
}
