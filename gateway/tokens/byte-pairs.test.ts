import fc from "fast-check";
import { countTokens as countCl100k } from "gpt-tokenizer/encoding/cl100k_base";
import { countTokens as countO200k } from "gpt-tokenizer/encoding/o200k_base";
import { describe, expect, it } from "vitest";
import { loadEncoding } from "./byte-pairs.ts";

// Its tables of text cannot hold a byte order mark, so it counts one or two tokens more where there is one.
const MARK = /\ufeff/g;
// Text that looks like a special token is text.
const AS_TEXT = {
  allowedSpecial: new Set<string>(),
  disallowedSpecial: new Set<string>(),
};

const TEXTS = [
  "",
  "a",
  " Hello, World! It's what they'll've said; we'd SEE. HELLOworld helloWorld don'T O'Brien's",
  "tabs\tand\r\n\r\n  line ends \n\n\n   and trailing   ",
  "1234567 12.5e-7 x86_64 /usr/lib/node_modules/.bin //comment/\n",
  "Straßenbahn ÄÖÜäöü naïve café e\u0301 Ελλάδα Ǆ ǅ ʰʱ",
  "明日の会議は午前十時から。Завтра утром — на дачу!",
  "🦊👩‍👩‍👧‍👦🏳️‍🌈 \ud800 half \udfff pairs \ud83e",
  "<|endoftext|><|im_start|>user",
  "\u0000\u0001\u007f\u0080\u00a0\u2003\u2028",
  "x".repeat(300),
  "qzxjkvbw".repeat(40),
];

const piece = fc.oneof(
  fc.constantFrom(
    " ",
    "  ",
    "\n",
    "\r\n",
    "'",
    "'s",
    "'LL",
    "a",
    "A",
    "the",
    "The",
    "ß",

    "É",
    "\u0301",
    "1",
    "42",
    "/",
    "-",
    "_",
    "(",
    "🦊",
    "\ud800",
    "中",
    "ǅ",
  ),
  fc.string({ unit: "binary", maxLength: 8 }),
  fc.string({ unit: "grapheme", maxLength: 8 }),
);

describe.each([
  ["o200k_base", countO200k],
  ["cl100k_base", countCl100k],
] as const)("%s", (encoding, expected) => {
  it("counts like the library whose tables it reads", async () => {
    const count = await loadEncoding(encoding);
    for (const text of TEXTS) {
      expect([text, count(text)]).toEqual([text, expected(text, AS_TEXT)]);
    }
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const text = pieces.join("").replace(MARK, "");
        expect(count(text)).toBe(expected(text, AS_TEXT));
      }),
      { numRuns: 2_000 },
    );
  });
});
