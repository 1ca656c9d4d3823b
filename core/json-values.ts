/** Deeper than any real JSON. Recursion over it would exhaust the stack at some thousands, and each level takes V8 a microsecond. */
export const MAX_DEPTH = 200;

/** A JSON text that would take too much time or memory to parse. */
type Excess = "too-deep" | "too-many";

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * Counts the values of a JSON text and its nesting before anything is allocated for them: `[[],[],…]` takes 13 times its size
 * when parsed. Stops at more than `maxValues`, and at more than `MAX_DEPTH` levels. Invalid JSON is left to the parser.
 */
export function countValues(
  text: Uint8Array,
  maxValues = Infinity,
): number | Excess {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case QUOTE:
        at = endOfString(text, at + 1);
        break;
      case OPEN_LIST:
      case OPEN_OBJECT:
        values++;
        if (++depth > MAX_DEPTH) {
          return "too-deep";
        }
        break;
      case COMMA:
        if (++values > maxValues) {
          return "too-many";
        }
        break;
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        depth--;
    }
  }
  return values;
}

/** For shorter strings a loop is faster than a native search. */
const SEARCH_AFTER = 64;

/** Index of the quote that ends the string whose first byte is at `start`; the length of the text if it ends before. */
function endOfString(text: Uint8Array, start: number): number {
  let at = start;
  for (;;) {
    for (const until = at + SEARCH_AFTER; at < until; at++) {
      if (text[at] === QUOTE || at >= text.length) {
        return at;
      }
      if (text[at] === BACKSLASH) {
        at++;
      }
    }
    const quote = text.indexOf(QUOTE, at);
    if (quote === -1) {
      return text.length;
    }
    let escapes = quote;
    while (escapes > at && text[escapes - 1] === BACKSLASH) {
      escapes--;
    }
    if ((quote - escapes) % 2 === 0) {
      return quote;
    }
    at = quote + 1;
  }
}
