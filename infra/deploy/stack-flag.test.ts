import { expect, test } from "vitest";
import { USAGE } from "./flags.ts";
import { withStackFlag } from "./stack-flag.ts";

test("the commands of a message change the stack that it is about", () => {
  const text =
    "run `npm run deploy -- up --refresh`, then `npm run deploy -- doctor`.";
  expect(withStackFlag(text, "trial")).toBe(
    "run `npm run deploy -- --stack trial up --refresh`, then `npm run deploy -- --stack trial doctor`.",
  );
  expect(withStackFlag(text, "home")).toBe(text);
  expect(withStackFlag(USAGE, "trial")).toContain(
    "usage: npm run deploy -- VERB [--stack home]",
  );
});
