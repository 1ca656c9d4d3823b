import { expect, test } from "vitest";
import { addedSince } from "./remote-logs.ts";

test.each([
  [["a", "b"], ["a", "b", "c"], ["c"]],
  [["a", "b", "c"], ["b", "c", "d"], ["d"]],
  [["a", "a"], ["a", "a"], []],
  [["a", "a"], ["a", "a", "a"], ["a"]],
  [[], ["a"], ["a"]],
  [
    ["a", "b"],
    ["x", "y"],
    ["x", "y"],
  ],
])("after %j, %j adds %j", (before, now, added) => {
  expect(addedSince(before, now)).toEqual(added);
});
