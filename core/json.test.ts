import { expect, test } from "vitest";
import { parseJson, parseRecord } from "./json.ts";

const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

test("reads JSON of any length", () => {
  const value = { text: "[{".repeat(50_000), list: [1, { a: null }] };
  expect(parseRecord(JSON.stringify(value))).toEqual(value);
  expect(parseJson(nested(200))).toEqual(JSON.parse(nested(200)));
});

test.each(["", "{", '{"a":1', "x"])("%j is no JSON", (text) => {
  expect(parseJson(text)).toBeUndefined();
});

test("text with more values than any real one is not read, as they would take 13 times its memory", () => {
  expect(parseJson(`[${"[],".repeat(4_100_000)}1]`)).toBeUndefined();
});

test("text that is nested deeper than any real one is not read", () => {
  expect(parseJson(nested(4_000_000))).toBeUndefined();
  expect(parseRecord(`{"error":${nested(20_000)}}`)).toBeNull();
});
