import type { Deployment, PriceOverrides } from "../config/types.ts";
import { cataloguePrices } from "./price-catalogue.ts";
import {
  flatCard,
  perMillion,
  ratesAt,
  ratesForEstimates,
  type Price,
  type PriceCard,
  type Rates,
} from "./price-card.ts";
import type { FilePrices } from "./price-file.ts";
import { isLocalRunner } from "./local-runner.ts";

export type { PriceCard } from "./price-card.ts";
export { readPricesFile, type FilePrices } from "./price-file.ts";

/**
 * Tokens of one call. `inputTokens` includes cached, cache-write and audio input; `outputTokens` includes audio and
 * reasoning output. The parts of the input do not overlap.
 */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Read from the provider's prompt cache. */
  readonly cachedInputTokens: number;
  /** Written into the provider's prompt cache. */
  readonly cacheWriteTokens: number;
  readonly audioInputTokens: number;
  readonly audioOutputTokens: number;
  readonly reasoningTokens: number;
  /** Made by an image route; absent: none. */
  readonly images?: number;
}

export interface PriceBook {
  /**
   * The prices of a deployment, looked up once each; null: nobody knows them, its calls cost 0 and are shown as
   * unpriced. `model` is what a wildcard deployment was called for; default: the deployment's own.
   */
  priceFor(deployment: Deployment, model?: string): PriceCard | null;
}

/** Wildcard deployments are called for as many models as callers think of. */
const MOST_MODELS = 1_000;

/** The order of resolution: the deployment's own prices, `prices_file`, the catalogue; local runners cost 0 unless priced. */
export function createPriceBook(file: FilePrices | null): PriceBook {
  const known = new WeakMap<Deployment, Map<string, PriceCard | null>>();
  return {
    priceFor(deployment, model = deployment.model) {
      const cards =
        known.get(deployment) ?? new Map<string, PriceCard | null>();
      known.set(deployment, cards);
      const card = cards.get(model);
      if (card !== undefined) return card;
      const resolved = resolve({ ...deployment, model }, file);
      if (cards.size < MOST_MODELS) cards.set(model, resolved);
      return resolved;
    },
  };
}

function resolve(
  deployment: Deployment,
  file: FilePrices | null,
): PriceCard | null {
  const base =
    file?.find(deployment) ??
    (isLocalRunner(deployment) ? FREE : cataloguePrices(deployment));
  return Object.values(deployment.prices).some((price) => price !== null)
    ? overridden(deployment.prices, base)
    : base;
}

const FREE: PriceCard = flatCard("local", {
  input: 0,
  output: 0,
  cachedInput: null,
  cacheWrite: null,
  audioInput: null,
  audioOutput: null,
  reasoning: null,
  perRequest: 0,
  perImage: 0,
});

/**
 * An overridden input or output price takes its whole side: a discount or surcharge that belonged to the replaced
 * price does not outlive it, so that an input price of 0 is 0 for cached input too.
 */
function overridden(own: PriceOverrides, base: PriceCard | null): PriceCard {
  const lower = base === null ? null : ratesAt(base, Date.now());
  const inputSide = own.input === null ? lower : null;
  const outputSide = own.output === null ? lower : null;
  return {
    ...flatCard("deployment", {
      input: perMillion(own.input) ?? inputSide?.input ?? 0,
      output: perMillion(own.output) ?? outputSide?.output ?? 0,
      cachedInput: perMillion(own.cacheRead) ?? inputSide?.cachedInput ?? null,
      cacheWrite: perMillion(own.cacheWrite) ?? inputSide?.cacheWrite ?? null,
      audioInput: perMillion(own.audioInput) ?? inputSide?.audioInput ?? null,
      audioOutput:
        perMillion(own.audioOutput) ?? outputSide?.audioOutput ?? null,
      reasoning: outputSide?.reasoning ?? null,
      perRequest: own.perRequest ?? lower?.perRequest ?? 0,
      perImage: own.perImage ?? lower?.perImage ?? 0,
    }),
    maxOutputTokens: base?.maxOutputTokens ?? null,
    contextWindow: base?.contextWindow ?? null,
  };
}

/**
 * What a call costs in dollars, unrounded. `at` (ms since the epoch, default now) decides where prices change with time.
 * Parts that claim more tokens than there are count as far as there are.
 */
export function costOf(
  card: PriceCard,
  usage: Usage,
  at: number = Date.now(),
): number {
  const rates = ratesAt(card, at);
  const total = usage.inputTokens;
  const cached = Math.min(usage.cachedInputTokens, total);
  const written = Math.min(usage.cacheWriteTokens, total - cached);
  const audio = Math.min(usage.audioInputTokens, total - cached - written);
  const plain = total - cached - written - audio;
  const audioOut = Math.min(usage.audioOutputTokens, usage.outputTokens);
  const reasoning = Math.min(
    usage.reasoningTokens,
    usage.outputTokens - audioOut,
  );
  const text = usage.outputTokens - audioOut - reasoning;
  const input = tier(rates.input, total);
  const output = tier(rates.output, total);
  const tokens =
    plain * input +
    cached * tierOr(rates.cachedInput, total, input) +
    written * tierOr(rates.cacheWrite, total, input) +
    audio * tierOr(rates.audioInput, total, input) +
    text * output +
    audioOut * tierOr(rates.audioOutput, total, output) +
    reasoning * tierOr(rates.reasoning, total, output);
  return tokens / 1e6 + rates.perRequest + rates.perImage * (usage.images ?? 0);
}

/** The worst case of a call in dollars: no cached input, everything written into the cache, all output at the dearest rate of text. */
export function dearest(
  card: PriceCard,
  inputTokens: number,
  outputTokens: number,
  images = 0,
): number {
  return Math.max(
    ...ratesForEstimates(card, Date.now()).map(
      (rates) =>
        worstCase(rates, inputTokens, outputTokens) + rates.perImage * images,
    ),
  );
}

function worstCase(
  rates: Rates,
  inputTokens: number,
  outputTokens: number,
): number {
  const input = tier(rates.input, inputTokens);
  const output = tier(rates.output, inputTokens);
  const tokens =
    inputTokens * Math.max(input, tierOr(rates.cacheWrite, inputTokens, 0)) +
    outputTokens * Math.max(output, tierOr(rates.reasoning, inputTokens, 0));
  return tokens / 1e6 + rates.perRequest + rates.perImage;
}

/** Above a tier's start, its price holds for all tokens of the call. */
function tier(price: Price, inputTokens: number): number {
  if (typeof price === "number") return price;
  let rate = price.base;
  for (const step of price.tiers)
    if (inputTokens > step.start) rate = step.price;
  return rate;
}

function tierOr(
  price: Price | null,
  inputTokens: number,
  otherwise: number,
): number {
  return price === null ? otherwise : tier(price, inputTokens);
}

const NOTHING: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  audioInputTokens: 0,
  audioOutputTokens: 0,
  reasoningTokens: 0,
};

/**
 * Reads the `usage` object of an OpenAI-style answer (chat, completions, embeddings, responses, images).
 * Missing and malformed counts are 0; null when there is no usage at all.
 */
export function usageFromOpenAI(json: unknown): Usage | null {
  if (!isRecord(json)) return null;
  const input = count(json["prompt_tokens"]) ?? count(json["input_tokens"]);
  const total = count(json["total_tokens"]);
  const output =
    count(json["completion_tokens"]) ??
    count(json["output_tokens"]) ??
    (input !== null && total !== null ? Math.max(0, total - input) : null);
  if (input === null && output === null) return null;
  const inputDetails = firstRecord(
    json["prompt_tokens_details"],
    json["input_tokens_details"],
  );
  const outputDetails = firstRecord(
    json["completion_tokens_details"],
    json["output_tokens_details"],
  );
  return {
    ...NOTHING,
    inputTokens: input ?? 0,
    outputTokens: output ?? 0,
    cachedInputTokens:
      count(inputDetails["cached_tokens"]) ??
      // DeepSeek and Anthropic-style relays report it beside the totals.
      count(json["prompt_cache_hit_tokens"]) ??
      count(json["cache_read_input_tokens"]) ??
      0,
    cacheWriteTokens:
      count(inputDetails["cache_write_tokens"]) ??
      count(inputDetails["cache_creation_tokens"]) ??
      count(json["cache_creation_input_tokens"]) ??
      0,
    audioInputTokens: count(inputDetails["audio_tokens"]) ?? 0,
    audioOutputTokens: count(outputDetails["audio_tokens"]) ?? 0,
    reasoningTokens: count(outputDetails["reasoning_tokens"]) ?? 0,
  };
}

/** More than any call has: what says so counts wrongly, and sums of it would outgrow their columns. */
export const MOST_TOKENS = 1_000_000_000;

function count(value: unknown): number | null {
  return typeof value === "number" && value >= 0 && value <= MOST_TOKENS
    ? Math.round(value)
    : null;
}

function firstRecord(
  ...values: readonly unknown[]
): Readonly<Record<string, unknown>> {
  return values.find(isRecord) ?? {};
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The usage of a call of which only the input is known. */
export function inputOnly(inputTokens: number): Usage {
  return {
    inputTokens,
    outputTokens: 0,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    audioInputTokens: 0,
    audioOutputTokens: 0,
    reasoningTokens: 0,
  };
}
