import { isRecord, type JsonRecord } from "../../core/json.ts";
import {
  isPrice,
  MAX_PRICE,
  perMillion,
  type Piece,
  type Price,
  type Rates,
  type TierPrice,
} from "./price-card.ts";

/**
 * LiteLLM's names of prices, which its price file and the entries of models have in common:
 * https://docs.litellm.ai/docs/proxy/custom_pricing.
 */
const TOKEN_PRICES = {
  input: "input_cost_per_token",
  output: "output_cost_per_token",
  cachedInput: "cache_read_input_token_cost",
  cachedAudio: "cache_read_input_audio_token_cost",
  cachedImage: "cache_read_input_image_token_cost",
  cacheWrite: "cache_creation_input_token_cost",
  cacheWrite1h: "cache_creation_input_token_cost_above_1hr",
  audioInput: "input_cost_per_audio_token",
  imageInput: "input_cost_per_image_token",
  videoInput: "input_cost_per_video_token",
  audioOutput: "output_cost_per_audio_token",
  imageOutput: "output_cost_per_image_token",
  videoOutput: "output_cost_per_video_token",
  reasoning: "output_cost_per_reasoning_token",
  citation: "citation_cost_per_token",
} as const satisfies Partial<Readonly<Record<keyof Rates, string>>>;

type TokenRate = keyof typeof TOKEN_PRICES;
const TOKEN_RATES = Object.keys(TOKEN_PRICES) as readonly TokenRate[];

const REQUEST_PRICE = "input_cost_per_request";

/** Of an image created. The first that is set counts, as with pieces. */
const IMAGE_PRICES = ["output_cost_per_image", "input_cost_per_image"];

/** What is counted, its price's name and how many that price is for. */
const PIECE_PRICES: readonly (readonly [Piece, string, number])[] = [
  ["audioSeconds", "input_cost_per_second", 1],
  ["audioSeconds", "output_cost_per_second", 1],
  ["characters", "input_cost_per_character", 1],
  ["searchUnits", "input_cost_per_query", 1],
  ["fileSearches", "file_search_cost_per_1k_calls", 1_000],
  ["pages", "ocr_cost_per_page", 1],
  ["annotatedPages", "annotation_cost_per_page", 1],
];

/** A mapping of sizes to dollars. */
export const SEARCH_PRICES = "search_context_cost_per_query";

/** Thousands of input tokens above which LiteLLM has other prices for all tokens of a call. */
const LENGTHS = [100, 128, 200, 256, 272, 512];

/** How the prices of a service tier are named: by an ending of the standard price's name. */
const TIER_SUFFIXES = {
  priority: "_priority",
  flex: "_flex",
  batch: "_batches",
  fast: "_fast",
} as const;

/** What a service tier may have separate prices of. */
const TIER_RATES = ["input", "output", "cachedInput"] as const;

/** Every name of a price that an entry of `model_list` may have, without `SEARCH_PRICES`. */
export const PRICE_NAMES: readonly string[] = [
  ...Object.values(TOKEN_PRICES).flatMap((name) => withLengths(name, "")),
  ...Object.values(TIER_SUFFIXES).flatMap((suffix) =>
    TIER_RATES.flatMap((rate) => withLengths(TOKEN_PRICES[rate], suffix)),
  ),
  REQUEST_PRICE,
  ...IMAGE_PRICES,
  ...PIECE_PRICES.map(([, name]) => name),
];

function withLengths(name: string, suffix: string): readonly string[] {
  return [
    `${name}${suffix}`,
    ...LENGTHS.map((length) => `${name}_above_${length}k_tokens${suffix}`),
  ];
}

/** The prices that an entry sets. */
export interface OwnPrices {
  readonly rates: Readonly<Partial<Record<TokenRate, Price>>>;
  /** Dollars for each call; null: not set. */
  readonly perRequest: number | null;
  /** Dollars for each image created; null: not set. */
  readonly perImage: number | null;
  /** Dollars for each. */
  readonly perPiece: Readonly<Partial<Record<Piece, number>>>;
  readonly serviceTiers: Readonly<Record<string, TierPrice>>;
}

export type ReportPrice = (name: string, message: string) => void;

/** The prices among the fields of an entry; an invalid one is reported by its name. */
export function pricesIn(entry: JsonRecord, report: ReportPrice): OwnPrices {
  const amountOf = (name: string): number | null => amount(entry, name, report);
  return {
    rates: ratesIn(entry, report, TOKEN_RATES),
    perRequest: amountOf(REQUEST_PRICE),
    perImage:
      IMAGE_PRICES.map(amountOf).find((price) => price !== null) ?? null,
    perPiece: present([
      ["webSearches", searchPrice(entry, report)],
      // The first name of a piece counts: it comes last.
      ...PIECE_PRICES.map(([piece, name, count]): [Piece, number | null] => {
        const price = amountOf(name);
        return [piece, price === null ? null : price / count];
      }).reverse(),
    ]),
    serviceTiers: Object.fromEntries(
      Object.entries(TIER_SUFFIXES)
        .map(([tier, suffix]): [string, TierPrice] => [
          tier,
          ratesIn(entry, report, TIER_RATES, suffix),
        ])
        .filter(([, rates]) => Object.keys(rates).length > 0),
    ),
  };
}

function ratesIn<K extends TokenRate>(
  entry: JsonRecord,
  report: ReportPrice,
  keys: readonly K[],
  suffix = "",
): Readonly<Partial<Record<K, Price>>> {
  return present(
    keys.map((key) => [key, tiered(entry, TOKEN_PRICES[key], suffix, report)]),
  );
}

/** The size of a search's context is not reported; providers' default is the middle one. */
function searchPrice(entry: JsonRecord, report: ReportPrice): number | null {
  const prices = entry[SEARCH_PRICES];
  return isRecord(prices)
    ? amount(prices, "search_context_size_medium", report)
    : null;
}

function present<K extends string, V>(
  pairs: readonly (readonly [string, V | null])[],
): Readonly<Partial<Record<K, V>>> {
  return Object.fromEntries(
    pairs.filter(([, price]) => price !== null),
  ) as Partial<Record<K, V>>;
}

/** `input_cost_per_token_above_200k_tokens` and its like are tiers of `input_cost_per_token`; a suffix ends them all. */
function tiered(
  entry: JsonRecord,
  key: string,
  suffix: string,
  report: ReportPrice,
): Price | null {
  const base = perMillion(amount(entry, key + suffix, report));
  if (base === null) {
    return null;
  }
  const tiers = Object.keys(entry).flatMap((other) => {
    const [, thousands, end] =
      /^_above_(\d+)k_tokens(.*)$/.exec(
        other.startsWith(key) ? other.slice(key.length) : "",
      ) ?? [];
    const price =
      thousands === undefined || end !== suffix
        ? null
        : perMillion(amount(entry, other, report));
    return price === null ? [] : [{ start: Number(thousands) * 1_000, price }];
  });
  return tiers.length === 0
    ? base
    : { base, tiers: tiers.sort((a, b) => a.start - b.start) };
}

function amount(
  entry: JsonRecord,
  name: string,
  report: ReportPrice,
): number | null {
  const value = entry[name];
  if (value === undefined || value === null) {
    return null;
  }
  if (isPrice(value)) {
    return value;
  }
  report(
    name,
    `must be dollars, a number from 0 to ${MAX_PRICE}; it is ${JSON.stringify(value)}`,
  );
  return null;
}
