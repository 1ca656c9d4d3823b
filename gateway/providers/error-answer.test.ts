import { expect, test } from "vitest";
import type { PricedDeployment } from "../routing/catalog.ts";
import { errorAnswer } from "./error-answer.ts";
import type { ProviderCall } from "./provider-call.ts";

const CALL: ProviderCall = {
  deployment: { apiKey: null } as unknown as PricedDeployment,
  path: "/chat/completions",
  callId: "call",
  headers: {},
  body: "{}",
  error: (_status, text) => text,
  signal: new AbortController().signal,
  firstByteMs: null,
};

const waitAfter = (header: string | undefined) =>
  errorAnswer(CALL, 429, { "retry-after": header }, "too many").retryAfterMs;

test.each([
  ["30", 30_000],
  ["0", 0],
  ["-1", null],
  ["soon", null],
  [undefined, null],
  ["Wed, 21 Oct 2015 07:28:00 GMT", 0],
])("a provider's retry-after: %s", (header, ms) => {
  expect(waitAfter(header)).toBe(ms);
});

test("a provider's retry-after may be a date", () => {
  const wait = waitAfter(new Date(Date.now() + 60_000).toUTCString()) ?? 0;
  expect(wait).toBeGreaterThan(0);
  expect(wait).toBeLessThanOrEqual(60_000);
});

test.each([
  [429, 429],
  [599, 599],
  [999, 502],
])("a provider's status %i is answered as %i", (status, answered) => {
  expect(errorAnswer(CALL, status, {}, "failed").status).toBe(answered);
});
