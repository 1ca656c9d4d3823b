import { expect, test } from "vitest";
import { stringifyInTurns } from "./stringify-in-turns.ts";

test.each([
  ["text"],
  [1],
  [null],
  [undefined],
  [true],
  [new Date(0)],
  [[]],
  [{}],
  [[1, undefined, null, "a", { b: undefined }]],
  [{ list: [{ a: 1 }, [2]], none: undefined, 'a"b': { c: new Date(0) } }],
  [Object.assign(Object.create(null) as object, { a: [1] })],
  [{ a: 1, toJSON: () => "own" }],
])("%j has the JSON that it always has", async (value) => {
  expect(await stringifyInTurns(value)).toBe(JSON.stringify(value));
});

/** An element whose JSON takes a while. */
const slow = {
  toJSON() {
    const end = performance.now() + 2;
    while (performance.now() < end) {}
    return "slow";
  },
};

test.each([
  ["a list", Array.from({ length: 50 }, () => slow)],
  ["a list of an object", { list: Array.from({ length: 50 }, () => slow) }],
])("other work has its turns during %s", async (_, value) => {
  let turns = 0;
  let isDone = false;
  const count = () => {
    turns++;
    if (!isDone) {
      setImmediate(count);
    }
  };
  setImmediate(count);
  await stringifyInTurns(value);
  isDone = true;
  expect(turns).toBeGreaterThan(5);
});
