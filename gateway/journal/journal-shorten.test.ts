import fc from "fast-check";
import { expect, test } from "vitest";
import { jsonWithin } from "./journal-shorten.ts";

const FREE_TEXT = ["error", "metadata"];

test("a record that fits is written unchanged", () => {
  const record = { id: "a", error: "e", metadata: { note: "n".repeat(200) } };
  expect(jsonWithin(record, FREE_TEXT, 1_000)).toEqual({
    json: JSON.stringify(record),
    record,
  });
});

test("a text is cut no more than needed", () => {
  const record = {
    id: "a",
    error: "e".repeat(500),
    metadata: { note: "kept" },
  };
  const json = jsonWithin(record, FREE_TEXT, 300)?.json ?? "";
  expect(Buffer.byteLength(json)).toBe(300);
  expect(JSON.parse(json)).toMatchObject({
    id: "a",
    metadata: { note: "kept" },
  });
});

test("an object loses the ends of its texts, then everything", () => {
  const record = { id: "a", metadata: { code: 500, note: "n".repeat(300) } };
  expect(jsonWithin(record, FREE_TEXT, 250)?.json).toBe(
    JSON.stringify({
      id: "a",
      metadata: { code: 500, note: `${"n".repeat(100)}…` },
    }),
  );
  expect(jsonWithin(record, FREE_TEXT, 100)).toEqual({
    json: '{"id":"a","metadata":{}}',
    record: { id: "a", metadata: {} },
  });
});

test("other fields than free text are never changed: null when they are too long", () => {
  expect(
    jsonWithin({ id: "i".repeat(200), error: "e" }, FREE_TEXT, 100),
  ).toBeNull();
});

test("the result fits, and has every other field", () => {
  fc.assert(
    fc.property(
      fc.record({
        id: fc.string({ maxLength: 10 }),
        cost: fc.double({ noNaN: true, noDefaultInfinity: true }),
        error: fc.option(fc.string({ unit: "binary", maxLength: 400 })),
        metadata: fc.option(fc.jsonValue()),
      }),
      fc.integer({ min: 150, max: 600 }),
      (record, maxBytes) => {
        const written = jsonWithin(record, FREE_TEXT, maxBytes);
        const json = written?.json ?? "";
        expect(Buffer.byteLength(json)).toBeLessThanOrEqual(maxBytes);
        const { id, cost } = JSON.parse(
          JSON.stringify(record),
        ) as typeof record;
        expect(JSON.parse(json)).toMatchObject({ id, cost });
        expect(JSON.parse(JSON.stringify(written?.record))).toEqual(
          JSON.parse(json),
        );
      },
    ),
  );
});
