import { CallError } from "./errors.ts";

/** Deeper than any real body; recursion over a body would exhaust the stack at some thousands. */
export const MAX_DEPTH = 200;
/** Several times the largest real bodies: embeddings of 300,000 token numbers. */
export const MAX_VALUES = 1_000_000;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * Counts the values of a JSON text and its nesting before anything is allocated for them: `[[],[],…]` takes 13 times its size
 * when parsed. Throws 400 for a text that is too deep, 413 for one with too many values. Invalid JSON is left to the parser.
 */
export function countValues(text: Uint8Array): number {
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
          throw tooDeep();
        }
        break;
      case COMMA:
        if (++values > MAX_VALUES) {
          throw tooMany();
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

function tooDeep(): CallError {
  return new CallError(
    "invalid_request",
    `The body is nested deeper than ${MAX_DEPTH} levels. Send a flatter one.`,
  );
}

function tooMany(): CallError {
  return new CallError(
    "body_too_large",
    `The body has more than ${MAX_VALUES.toLocaleString("en")} values. Split it into several requests.`,
  );
}
