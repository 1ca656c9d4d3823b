import { expect, test } from "vitest";
import { nearest } from "./nearest.ts";

test.each([
  ["stauts", "status"],
  ["lgos", "logs"],
  ["restrat", "restart"],
  ["xyzzyplugh", undefined],
])("%s means %s", (word, meant) => {
  expect(nearest(word, ["up", "status", "logs", "restart"])).toBe(meant);
});
