import { expect, test } from "vitest";
import { inputOnly } from "../tokens/reported-usage.ts";
import { cacheSavings } from "./cache-savings.ts";
import { UNPRICED, flatCard } from "./price-card.ts";

/** Dollars per million tokens, as of a model of Anthropic. */
const CARD = flatCard("deployment", {
  input: 3,
  output: 15,
  cachedInput: 0.3,
  cacheWrite: 3.75,
  cacheWrite1h: 6,
  audioInput: 10,
  cachedAudio: 1,
  audioOutput: null,
  reasoning: null,
  perRequest: 0.5,
  perImage: null,
});
const MILLION = 1_000_000;

test("without a cache nothing is saved", () => {
  expect(cacheSavings(CARD, inputOnly(MILLION))).toBe(0);
});

test.each([
  ["what was read costs a tenth", { cachedInputTokens: MILLION }, 2.7],
  [
    "what was written costs a quarter more",
    { cacheWriteTokens: MILLION },
    -0.75,
  ],
  [
    "what was written for an hour costs twice the price",
    { cacheWriteTokens: MILLION, cacheWrite1hTokens: MILLION },
    -3,
  ],
  [
    "both count in one call",
    { cachedInputTokens: MILLION / 2, cacheWriteTokens: MILLION / 2 },
    1.35 - 0.375,
  ],
  [
    "cached audio is compared with the price of audio",
    { cachedInputTokens: MILLION, cachedAudioTokens: MILLION },
    9,
  ],
])("%s", (_rule, parts, saved) => {
  const usage = { ...inputOnly(MILLION), outputTokens: 7, ...parts };
  expect(cacheSavings(CARD, usage)).toBeCloseTo(saved, 9);
});

test("a model without a price of its own for cached input saves nothing", () => {
  const card = { ...CARD, ...flatCard("deployment", { ...FLAT }) };
  const usage = { ...inputOnly(MILLION), cachedInputTokens: MILLION };
  expect(cacheSavings(card, usage)).toBe(0);
});

const FLAT = { ...UNPRICED, input: 3, output: 15 };
