import { expect, test } from "vitest";
import {
  faultOfPattern,
  matchesAddress,
  matchesHeader,
} from "./caller-pattern.ts";

test("a pattern may match anywhere in the header", () => {
  const header = "User-Agent: claude-code/1.2.3 (external, cli)";
  expect(matchesHeader("^User-Agent: claude-code/\\d", header)).toBe(true);
  expect(matchesHeader("external", header)).toBe(true);
  expect(matchesHeader("^claude-code", header)).toBe(false);
  expect(matchesHeader("(?i)CLAUDE", header)).toBe(true);
});

test.each([
  ["(", "is not a regular expression"],
  ["(?=a)", "is not a regular expression"],
  ["(a)\\1", "is not a regular expression"],
  ["x".repeat(501), "has more than 500 characters"],
  ["(a{1,100}){1,9}", "is too large"],
])("%s is rejected", (pattern, fault) => {
  expect(faultOfPattern(pattern)).toContain(fault);
});

test("a pattern that takes JavaScript's engine hours is answered, from the start of a long header", () => {
  const evil = "^User-Agent: (a+)+$";
  expect(faultOfPattern(evil)).toBeNull();
  expect(matchesHeader(evil, `User-Agent: ${"a".repeat(200)}!`)).toBe(false);
  expect(matchesHeader("end$", `User-Agent: ${"a".repeat(9_000)}end`)).toBe(
    false,
  );
});

test("a pattern matches an address as a whole", () => {
  const pattern = "https://a\\.example|https://b\\.example/.*";
  expect(matchesAddress(pattern, "https://a.example")).toBe(true);
  expect(matchesAddress(pattern, "https://b.example/v1")).toBe(true);
  expect(matchesAddress(pattern, "https://a.example.evil")).toBe(false);
  expect(matchesAddress(pattern, "https://evil/?https://b.example/")).toBe(
    false,
  );
  const long = `https://b.example/${"a".repeat(1_000_000)}`;
  expect(matchesAddress(pattern, long)).toBe(false);
});
