import fc from "fast-check";
import { expect, test } from "vitest";
import { INCOMPLETE, INVALID, scanValue, skipSpace } from "./scan-json.ts";

const bytesOf = (text: string): Buffer => Buffer.from(text);

test("the end of any JSON value is found, with any white space", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(0, 1, 2), (value, indent) => {
      const bytes = bytesOf(JSON.stringify(value, null, indent));
      expect(scanValue(bytes, 0, true)).toBe(bytes.length);
    }),
  );
});

test("a text is accepted exactly when JSON.parse accepts it", () => {
  const piece = fc.constantFrom(
    ...'{}[],:"\\ntruefalse0123456789.eE+- u\n\u0001é'.split(""),
    '"a"',
    '":',
    "null",
    "\\u00e9",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const bytes = bytesOf(pieces.join(""));
      const start = skipSpace(bytes, 0);
      const end = scanValue(bytes, start, true);
      const whole = end >= 0 && bytes.toString("utf8", end).trim() === "";
      expect(whole).toBe(isJson(bytes.toString()));
    }),
    { numRuns: 5000 },
  );
});

test("a value cut anywhere is incomplete, and found with the remaining bytes", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat(), (value, cut) => {
      const bytes = bytesOf(`${JSON.stringify(value)} `);
      const part = bytes.subarray(0, cut % (bytes.length - 1));
      const end = scanValue(part, 0, false);
      expect(end === INCOMPLETE || end > 0).toBe(true);
      expect(end).not.toBe(INVALID);
    }),
  );
});

test.each([
  ["half a surrogate pair", '"\\ud800"'],
  ["the second half first", '"\\udc00\\ud800"'],
  ["two first halves", '"\\ud800\\ud800"'],
])("%s is rejected: it cannot be encoded as UTF-8", (_what, text) => {
  expect(scanValue(bytesOf(text), 0, true)).toBe(INVALID);
});

test("a complete surrogate pair is accepted", () => {
  expect(scanValue(bytesOf('"\\ud83d\\ude00"'), 0, true)).toBe(14);
});

test("excessive nesting is rejected without a crash", () => {
  expect(scanValue(bytesOf("[".repeat(100_000)), 0, true)).toBe(INVALID);
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
