import { expect, test } from "vitest";
import { maskKeys } from "./mask-keys.ts";

test.each([
  ["a key", "sk-0123456789abcdef"],
  ["a token", "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbm5hIn0.c2lnbmF0dXJl_-1"],
])("%s is masked, and the text around it stays", async (_what, credential) => {
  expect(await maskKeys(`use ${credential} here`)).toBe("use [REDACTED] here");
});
