import { expect, test } from "vitest";
import { withoutSidecars } from "./backend.ts";

test.each([
  ["file://~", "file://~?metadata=skip"],
  [
    "file:///srv/state?no_tmp_dir=true",
    "file:///srv/state?no_tmp_dir=true&metadata=skip",
  ],
  ["file://~?metadata=skip", "file://~?metadata=skip"],
  ["s3://bucket?region=eu", "s3://bucket?region=eu"],
])("a state at %s is opened at %s", (given, kept) => {
  expect(withoutSidecars(given)).toBe(kept);
});
