import { expect, test } from "vitest";
import { compileSelector } from "./selector.ts";

const matches = (
  selector: Record<string, unknown>,
  document: Record<string, unknown>,
): boolean => compileSelector(selector).matches(document);

test.each([
  [{ type: "plain" }, { type: "plain" }, true],
  [{ type: { $ne: "leaf" } }, { type: "plain" }, true],
  [{ type: { $ne: "leaf" } }, { type: "leaf" }, false],
  // CouchDB: a missing member matches no operator but $exists: false.
  [{ type: { $ne: "leaf" } }, {}, false],
  [{ $not: { type: "leaf" } }, {}, false],
  [{ type: { $exists: false } }, {}, true],
  [{ type: { $exists: true } }, {}, false],
  [{ $not: { type: { $exists: true } } }, {}, true],
  [{ type: { $not: { $exists: true } } }, {}, true],
  [{ a: { b: 1 } }, { a: { b: 1 } }, true],
  [{ "a.b": { $gt: 0 } }, { a: { b: 1 } }, true],
  [{ "a\\.b": 1 }, { "a.b": 1 }, true],
  [{ "list.1": "y" }, { list: ["x", "y"] }, true],
  [{ n: { $gt: 1, $lt: 3 } }, { n: 2 }, true],
  [{ n: { $not: { $gt: 1 } } }, { n: 2 }, false],
  [{ n: { $gt: null } }, { n: false }, true],
  [{ n: { $lt: "a" } }, { n: 5 }, true],
  [{ $or: [{ n: 1 }, { n: 2 }] }, { n: 2 }, true],
  [{ $nor: [{ n: 1 }, { n: 2 }] }, { n: 3 }, true],
  [{ $nor: [{ n: 1 }, { n: 2 }] }, { n: 2 }, false],
  [{ $not: { $or: [{ n: 1 }, { n: 2 }] } }, { n: 1 }, false],
  [{ tags: { $in: ["a"] } }, { tags: ["a", "b"] }, true],
  [{ tags: { $nin: ["a"] } }, { tags: ["b"] }, true],
  [{ tags: { $all: ["a", "b"] } }, { tags: ["b", "a", "c"] }, true],
  [{ tags: { $size: 2 } }, { tags: ["b", "a"] }, true],
  [{ tags: { $elemMatch: { $gt: 3 } } }, { tags: [1, 4] }, true],
  [{ tags: { $allMatch: { $gt: 3 } } }, { tags: [1, 4] }, false],
  [{ map: { $keyMapMatch: { $eq: "k" } } }, { map: { k: 1 } }, true],
  [{ n: { $mod: [4, 1] } }, { n: 9 }, true],
  [{ s: { $regex: "^h:" } }, { s: "h:1" }, true],
  [{ s: { $beginsWith: "h" } }, { s: "h:1" }, true],
  [{ s: { $type: "array" } }, { s: [] }, true],
  [{ s: {} }, { s: {} }, true],
  [{}, { s: 1 }, true],
  [{ _id: { $gt: "h:", $lt: "h;" } }, { _id: "h:1" }, true],
])("%j on %j is %s", (selector, document, expected) => {
  expect(matches(selector, document)).toBe(expected);
});

test.each([
  [{ a: { $what: 1 } }, "Invalid operator: $what"],
  [{ $and: 5 }, "Invalid argument for $and: 5"],
  [{ a: { $regex: "(" } }, 'Invalid argument for $regex: "("'],
  [{ a: { $mod: [0, 1] } }, "Invalid argument for $mod: [0,1]"],
])("%j is rejected", (selector, sentence) => {
  expect(() => compileSelector(selector as Record<string, unknown>)).toThrow(
    sentence,
  );
});

test.each([
  ["nested quantifiers", { s: { $regex: "^(a+)+$" } }, "a".repeat(40) + "!"],
  [
    "a large pattern on a long text",
    { s: { $regex: "(a{1,30}){1,30}!b" } },
    "a".repeat(200_000) + "!",
  ],
  [
    "many values in a long list",
    { s: { $in: Array.from({ length: 30_000 }, (_each, n) => n) } },
    Array.from({ length: 30_000 }, (_each, n) => -n - 1),
  ],
])("%s take no longer than a second or do not match", (_name, selector, s) => {
  const started = performance.now();
  expect(matches(selector, { s })).toBe(false);
  // JavaScript's own matcher takes hours for the first, the others take ten times as long when unbounded.
  expect(performance.now() - started).toBeLessThan(60_000);
});

const many = <Value>(length: number, value: Value): Value[] =>
  Array.from({ length }, () => value);
const members = Object.fromEntries(many(10_000, 0).map((_each, n) => [n, n]));
const text = "a".repeat(5_000);

/** Each condition that matches comes after those that would take too long. */
test.each([
  [
    "conditions on each value of a list",
    [...many(10_000, { $elemMatch: { $eq: 1 } }), { $size: 10_000 }],
    many(10_000, 0),
  ],
  [
    "conditions on all values of a list",
    [...many(10_000, { $allMatch: { $eq: 0 } }), { $size: 10_000 }],
    [...many(9_999, 0), 1],
  ],
  [
    "alternatives for each value of a list",
    [
      { $elemMatch: { $or: many(10_000, { $exists: false }) } },
      { $size: 9000 },
    ],
    many(9_000, 0),
  ],
  [
    "paths into each value of a list",
    [...many(10, { $elemMatch: { ["a.".repeat(10_000)]: 1 } }), { $size: 900 }],
    many(900, {}),
  ],
  [
    "conditions on the names of all members",
    [...many(10_000, { $keyMapMatch: { $eq: "x" } }), { "1": 1 }],
    members,
  ],
  [
    "comparisons of long texts",
    [...many(100, { $elemMatch: { $eq: `${text}b` } }), { $size: 1_000 }],
    many(1_000, `${text}c`),
  ],
  [
    "comparisons of lists",
    [...many(10_000, { $eq: many(5_001, 0) }), { $size: 10_000 }],
    many(10_000, 0),
  ],
  [
    "comparisons of all members",
    [...many(1_000, { $eq: { "0": 1 } }), { "1": 1 }],
    members,
  ],
])("a document does not match if too many %s precede", (_name, $or, s) => {
  expect(matches({ s: { $or } }, { s })).toBe(false);
  expect(matches({ s: $or.at(-1) }, { s })).toBe(true);
});

test("an aborted condition matches neither way", () => {
  const costly = { s: { $regex: "(a{1,30}){1,30}!b" } };
  const document = { s: "a".repeat(200_000) };
  expect(matches(costly, document)).toBe(false);
  expect(matches({ $not: costly }, document)).toBe(false);
});

test("a selector may contain a bounded number of bounded patterns", () => {
  const many = {
    $or: Array.from({ length: 21 }, () => ({ s: { $regex: "a" } })),
  };
  expect(() => compileSelector(many)).toThrow("at most 20 regular expressions");
  expect(() => compileSelector({ s: { $regex: "a".repeat(1001) } })).toThrow(
    "at most 1000 characters",
  );
  expect(() => compileSelector({ s: { $regex: "(?=a)" } })).toThrow(
    "look-around are not supported",
  );
});

test.each([
  ["members", { s: Object.fromEntries(many(60_000, 0).map((_, n) => [n, 0])) }],
  ["alternatives", { $or: many(60_000, { s: 1 }) }],
  ["empty conditions", { $or: many(60_000, {}) }],
  ["nested conditions", { $or: many(300, { $nor: many(200, { s: 1 }) }) }],
])("a selector may contain a bounded number of %s", (_name, selector) => {
  expect(() => compileSelector(selector)).toThrow(
    "A selector may hold at most 50000 conditions.",
  );
});

test("the conditions on known members are checked alone, so LiveSync's selector needs no document bodies", () => {
  const known = new Set(["type"]);
  const { only } = compileSelector({
    type: { $ne: "leaf" },
    "deep.path": 1,
    $or: [{ type: "plain" }, { $not: { deep: 2 } }],
  });
  expect(only(known)).toMatchObject({ isWhole: false });
  expect(only(known)?.matches({ type: "leaf" })).toBe(false);
  expect(only(known)?.matches({ type: "plain" })).toBe(true);
  expect(only(new Set())).toBeUndefined();
  const whole = compileSelector({ type: { $ne: "leaf" } });
  expect(whole.only(known)).toMatchObject({ isWhole: true });
});
