import { expect, test } from "vitest";
import { withoutTrailingSlashes } from "./trailing-slashes.ts";

test.each([
  ["http://a/v1//", "http://a/v1"],
  ["http://a//v1", "http://a//v1"],
  ["//", ""],
  ["", ""],
])("%s has no slashes at its end as %j", (text, expected) => {
  expect(withoutTrailingSlashes(text)).toBe(expected);
});
