import fc from "fast-check";
import { expect, test } from "vitest";
import { countValues, MAX_DEPTH } from "./json-values.ts";

const count = (text: string, maxValues?: number) =>
  countValues(Buffer.from(text), maxValues);

/** Each level of nesting adds one: a list and its first value are two. */
function valuesOf(value: unknown): number {
  if (typeof value !== "object" || value === null) {
    return 0;
  }
  const inner: readonly unknown[] = Object.values(value);
  return inner.reduce<number>(
    (sum, one) => sum + valuesOf(one),
    1 + Math.max(0, inner.length - 1),
  );
}

test("counts the values of any JSON, whatever its strings contain", () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
      expect(count(JSON.stringify(value))).toBe(1 + valuesOf(value));
    }),
  );
});

test("skips strings of every length with quotes, brackets and backslashes at every place", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('"', "\\", "[", ",", "a".repeat(70), "ü"), {
        maxLength: 200,
      }),
      (pieces) => {
        expect(count(JSON.stringify([pieces.join(""), 1]))).toBe(3);
      },
    ),
  );
});

test.each(["", '"', '"\\', '["a', "]]]]", "{", `"${"a".repeat(100)}`])(
  "leaves the invalid JSON %j to the parser",
  (text) => {
    expect(count(text)).toBeLessThan(3);
  },
);

test("accepts the deepest allowed nesting and rejects the next", () => {
  const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  expect(count(nested(MAX_DEPTH))).toBe(MAX_DEPTH + 1);
  expect(count(nested(MAX_DEPTH + 1))).toBe("too-deep");
  expect(count('{"a":'.repeat(50_000))).toBe("too-deep");
});

test("stops at too many values", () => {
  expect(count("[1,1,1]", 4)).toBe(4);
  expect(count("[1,1,1]", 3)).toBe("too-many");
});
