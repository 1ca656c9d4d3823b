import { expect, test } from "vitest";
import { withStackFlag } from "./stack-flag.ts";

test("the commands of a message change the stack that it is about", () => {
  const text =
    "run `npx pulumi config set hearth:localRunnerA URL`, then `npm run deploy -- up --refresh`.";
  expect(withStackFlag(text, "trial")).toBe(
    "run `npx pulumi config set --stack trial hearth:localRunnerA URL`, then `npm run deploy -- --stack trial up --refresh`.",
  );
  expect(withStackFlag(text, "home")).toBe(text);
  const shows = "`npx pulumi stack output --show-secrets masterKey` shows it.";
  expect(withStackFlag(shows, "trial")).toBe(
    "`npx pulumi stack output --stack trial --show-secrets masterKey` shows it.",
  );
  const usage = "usage: npm run deploy -- VERB [--stack home]";
  expect(withStackFlag(usage, "trial")).toBe(usage);
});
