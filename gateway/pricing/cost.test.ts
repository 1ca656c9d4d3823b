import fc from "fast-check";
import { expect, test } from "vitest";
import { inputOnly, type Usage } from "../tokens/reported-usage.ts";
import { billOf, mostExpensive, type CostLine } from "./cost.ts";
import { flatCard, type PriceCard, type Rates } from "./price-card.ts";
import { cardOf, cost } from "./prices-fixture.ts";

const RATES: Rates = {
  input: { base: 0.15, tiers: [{ start: 200_000, price: 0.3 }] },
  output: 0.6,
  cachedInput: 0.075,
  cacheWrite: 0.1875,
  cacheWrite1h: 0.3,
  audioInput: 2.5,
  audioOutput: null,
  reasoning: 1.2,
  perRequest: 0.0021,
  perImage: 0.04,
  perPiece: { webSearches: 0.01 },
};
const CARD: PriceCard = {
  ...flatCard("prices_file", RATES),
  serviceTiers: { flex: 0.5, priority: { input: 0.35 } },
};
const USAGE: Usage = {
  ...inputOnly(10_007),
  outputTokens: 503,
  cachedInputTokens: 4_001,
  cacheWriteTokens: 333,
  cacheWrite1hTokens: 11,
  audioInputTokens: 77,
  reasoningTokens: 99,
  webSearches: 3,
  images: 2,
};

const SCALE = 40n;

/** A decimal number in units of 1e-40. */
function exactly(value: number): bigint {
  const [digits = "", exponent = "0"] = value.toString().split("e");
  const [whole = "", fraction = ""] = digits.split(".");
  const shift = SCALE - BigInt(fraction.length) + BigInt(exponent);
  return BigInt(whole + fraction) * 10n ** shift;
}

function amountOf([part, used, price, factor = 1]: CostLine): bigint {
  const one = 10n ** SCALE;
  const product =
    (((exactly(price) * exactly(used)) / one) * exactly(factor)) / one;
  return part.endsWith("tokens") ? product / 1_000_000n : product;
}

test("the lines of a bill name each part with its price", () => {
  expect(billOf(CARD, USAGE).lines).toEqual([
    ["input_tokens", 5_596, 0.15],
    ["cached_input_tokens", 4_001, 0.075],
    ["cache_write_tokens", 322, 0.1875],
    ["cache_write_1h_tokens", 11, 0.3],
    ["audio_input_tokens", 77, 2.5],
    ["output_tokens", 404, 0.6],
    ["reasoning_tokens", 99, 1.2],
    ["request", 1, 0.0021],
    ["images", 2, 0.04],
    ["web_searches", 3, 0.01],
  ]);
  const long = billOf(CARD, inputOnly(200_001)).lines;
  expect(long[0]).toEqual(["input_tokens", 200_001, 0.3]);
  const flex = billOf(CARD, inputOnly(10, ["flex"])).lines;
  expect(flex[0]).toEqual(["input_tokens", 10, 0.15, 0.5]);
  const priority = billOf(CARD, inputOnly(10, ["priority"])).lines;
  expect(priority[0]).toEqual(["input_tokens", 10, 0.35]);
});

test("models that took part in a call have lines at their own prices", () => {
  const advisor = { model: "claude-opus-4-1", usage: inputOnly(2_000_000) };
  const unknown = { model: "no-such-model", usage: inputOnly(5) };
  const usage = { ...inputOnly(1_000_000), others: [advisor, unknown] };
  const card = flatCard("prices_file", { ...RATES, input: 1, perRequest: 0 });
  expect(billOf(card, usage)).toEqual({
    cost: 31,
    lines: [
      ["input_tokens", 1_000_000, 1],
      ["claude-opus-4-1 input_tokens", 2_000_000, 15],
    ],
    unpriced: ["no-such-model"],
  });
  const free = flatCard("local", {
    ...RATES,
    input: 0,
    output: 0,
    perRequest: 0,
  });
  expect(billOf(free, usage).cost).toBe(0);
});

test("parts that cost nothing are listed, parts without a price and empty ones are not", () => {
  const free = flatCard("local", {
    ...RATES,
    input: 0,
    output: null,
    perRequest: 0,
  });
  const usage = { ...inputOnly(5), outputTokens: 2 };
  expect(billOf(free, usage).lines).toEqual([["input_tokens", 5, 0]]);
  expect(billOf(free, inputOnly(0)).lines).toEqual([]);
});

test.each([[[]], [["flex"]], [["priority"]]])(
  "the cost with tiers %j is the exact sum of its lines",
  (tiers) => {
    for (let step = 1; step < 400; step += 1) {
      const { cost, lines } = billOf(CARD, {
        ...USAGE,
        inputTokens: USAGE.inputTokens + step * 613,
        outputTokens: step * 17,
        tiers,
      });
      const sum = lines.map(amountOf).reduce((one, other) => one + other, 0n);
      expect(sum).toBe(exactly(cost));
    }
  },
);

test("the worst case covers every call of that size, cached or not", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(
        cardOf({ model: "anthropic/claude-sonnet-4-5" }),
        cardOf({ model: "gemini/gemini-2.5-pro" }),
        cardOf({ model: "openai/gpt-5-mini" }),
      ),
      fc.nat(300_000),
      fc.nat(300_000),
      fc.nat(300_000),
      fc.nat(50_000),
      (priced, plain, cached, written, output) => {
        const input = plain + cached + written;
        const real = cost(priced, {
          inputTokens: input,
          cachedInputTokens: cached,
          cacheWriteTokens: written,
          outputTokens: output,
        });
        expect(
          mostExpensive(priced, { inputTokens: input, outputTokens: output }),
        ).toBeGreaterThanOrEqual(real - 1e-12);
      },
    ),
  );
});

test("parts that exceed the total are billed neither twice nor negatively", () => {
  const priced = cardOf({ model: "openai/gpt-5-mini" });
  const parts = {
    inputTokens: 10,
    cachedInputTokens: 50,
    cacheWriteTokens: 50,
    audioInputTokens: 50,
    outputTokens: 1,
    reasoningTokens: 9,
    audioOutputTokens: 9,
  };
  expect(cost(priced, parts)).toBeCloseTo((10 * 0.025 + 1 * 2) / 1e6, 15);
});
