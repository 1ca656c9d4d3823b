import { expect, test } from "vitest";
import { callsOfAlarm } from "./alarm-calls.ts";

test.each([
  ["soft-budget:key:0a1b", "key=0a1b"],
  ["budget:80:user:anna:home", "user=anna%3Ahome"],
  ["budget:100:team:kitchen", "team=kitchen"],
  ["soft-budget:tag:blue", "tag=blue"],
  ["unusual-spend:0a1b", "key=0a1b"],
  ["model:failures:openai/gpt", "status=failure&model=openai%2Fgpt"],
  ["model:delay:sonnet", "model=sonnet"],
  ["unpriced-model:sonnet", "model=sonnet"],
])("%s leads to its calls", (fingerprint, query) => {
  expect(callsOfAlarm(fingerprint)).toBe(`/spend/calls?${query}`);
});

test.each(["check:gateway", "soft-budget:organization:acme", "job:backup"])(
  "%s leads to none",
  (fingerprint) => {
    expect(callsOfAlarm(fingerprint)).toBeNull();
  },
);
