import { expect, test } from "vitest";
import { maskKeys } from "./mask-keys.ts";

test.each([
  ["a key", "sk-0123456789abcdef"],
  ["a token", "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbm5hIn0.c2lnbmF0dXJl_-1"],
])("%s is masked, and the text around it stays", async (_what, credential) => {
  expect(await maskKeys(`use ${credential} here`)).toBe("use [REDACTED] here");
});

test("several tokens are masked, also after a hyphen and before a dot", async () => {
  const token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbm5hIn0.c2lnbmF0dXJl";
  expect(await maskKeys(`x-${token} ${token}.a,eyJhbGci.eyJz`)).toBe(
    "x-[REDACTED] [REDACTED].a,eyJhbGci.eyJz",
  );
});

test("a text of beginnings of tokens, which takes minutes forwards, is read", async () => {
  const text = "-eyJaaaaa".repeat(100_000);
  expect(await maskKeys(text)).toBe(text);
});
