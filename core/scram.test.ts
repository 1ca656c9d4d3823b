import { expect, test } from "vitest";
import { isVerifierOf, scramVerifier } from "./scram.ts";

const PASSWORD = "postgres-0123456789abcdef";
/** Written by Postgres for that password, with its random salt. */
const WRITTEN_BY_POSTGRES =
  "SCRAM-SHA-256$4096:agfP9Aqh6cHWcKUyUTDxzQ==$4EjEUq+Q8vlVO8MQkwmo6JoOcQan+jfYkMbr9Uyzgdw=:2sZvI7medF3QuaZluNf/owfiqw/4xbbOJX7jC/YWkeA=";

test.each([
  [PASSWORD, WRITTEN_BY_POSTGRES, true],
  [PASSWORD, scramVerifier("postgres", PASSWORD), true],
  ["another-0123456789abcdef", WRITTEN_BY_POSTGRES, false],
  [PASSWORD, "md5e8a48653851e28c69d0506508fb27fc5", false],
])("the password of a verifier is known: %s %s", (password, verifier, is) => {
  expect(isVerifierOf(password, verifier)).toBe(is);
});
