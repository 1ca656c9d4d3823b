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

test("a name of megabytes means nothing", () => {
  const known = Array.from({ length: 40 }, (_, at) => `a_known_name_${at}`);
  expect(nearest("a".repeat(20_000_000), known)).toBeUndefined();
});
