import { readFileSync } from "node:fs";
import { textOf } from "../../core/failure.ts";
import type { ConfigProblem } from "../../core/config/problem.ts";
import type { Deployment } from "../config/types.ts";
import {
  flatCard,
  isPrice,
  MAX_PRICE,
  perMillion,
  type Piece,
  type Price,
  type PriceCard,
  type Rates,
} from "./price-card.ts";
import { isRecord, type JsonRecord } from "../../core/json.ts";
import { tierPrices } from "./service-tiers.ts";
import { tokenLimitsOf } from "./token-limits.ts";

export interface FilePrices {
  /** By `provider/model`, the model, `base_model`, the alias: the first that the file has. */
  find(deployment: Deployment): PriceCard | null;
}

type FilePricesResult =
  | { readonly ok: true; readonly prices: FilePrices }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };

/** An entry of LiteLLM's own file that explains the fields. */
const EXPLANATION = "sample_spec";

/** Reads `prices_file`: JSON in the shape of LiteLLM's model_prices, keyed by model. Every mistake is named with its key. */
export function readPricesFile(file: string): FilePricesResult {
  const problems: ConfigProblem[] = [];
  const report = (path: string, message: string): void => {
    problems.push({ file, line: null, path, message });
  };
  const entries = readEntries(file, report);
  const cards = new Map<string, PriceCard>();
  for (const [model, entry] of Object.entries(entries)) {
    if (model === EXPLANATION) {
      continue;
    }
    if (isRecord(entry)) {
      cards.set(
        model,
        cardOf(entry, (key, message) => report(`${model}.${key}`, message)),
      );
    } else {
      report(
        model,
        'must be an object such as {"input_cost_per_token": 0.000001}',
      );
    }
  }
  if (problems.length > 0) {
    return { ok: false, problems };
  }
  return {
    ok: true,
    prices: {
      find({ providerName, model, baseModel, alias }) {
        for (const key of [
          `${providerName}/${model}`,
          model,
          baseModel,
          alias,
        ]) {
          const card = key === null ? undefined : cards.get(key);
          if (card !== undefined) {
            return card;
          }
        }
        return null;
      },
    },
  };
}

type Report = (path: string, message: string) => void;

function readEntries(file: string, report: Report): JsonRecord {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    const code =
      error instanceof Error && "code" in error
        ? String(error.code)
        : String(error);
    report("", `cannot be read (${code}); fix prices_file or its permissions`);
    return {};
  }
  try {
    const json: unknown = JSON.parse(text);
    if (isRecord(json)) {
      return json;
    }
    report("", "must be one JSON object, keyed by model");
  } catch (error) {
    report("", `is not valid JSON: ${textOf(error)}`);
  }
  return {};
}

function cardOf(entry: JsonRecord, report: Report): PriceCard {
  const rate = (key: string, suffix = ""): Price | null =>
    tiered(entry, key, suffix, report);
  const dollars = (key: string): number | null => amount(entry, key, report);
  const input = rate("input_cost_per_token");
  const output = rate("output_cost_per_token");
  const rates: Rates = {
    // With only one of the two, the other side is free; with neither, tokens have no price.
    input: input ?? (output === null ? null : 0),
    output: output ?? (input === null ? null : 0),
    cachedInput: rate("cache_read_input_token_cost"),
    cachedAudio: rate("cache_read_input_audio_token_cost"),
    cachedImage: rate("cache_read_input_image_token_cost"),
    cacheWrite: rate("cache_creation_input_token_cost"),
    cacheWrite1h: rate("cache_creation_input_token_cost_above_1hr"),
    audioInput: rate("input_cost_per_audio_token"),
    imageInput: rate("input_cost_per_image_token"),
    audioOutput: rate("output_cost_per_audio_token"),
    imageOutput: rate("output_cost_per_image_token"),
    reasoning: rate("output_cost_per_reasoning_token"),
    citation: rate("citation_cost_per_token"),
    perRequest: dollars("input_cost_per_request") ?? 0,
    perImage:
      dollars("output_cost_per_image") ?? dollars("input_cost_per_image"),
    perPiece: piecePrices(entry, report),
  };
  return {
    ...flatCard("prices_file", rates),
    serviceTiers: {
      ...factorsOf(entry["provider_specific_entry"]),
      ...tierPrices(rate),
    },
    ...tokenLimitsOf(entry),
  };
}

function piecePrices(
  entry: JsonRecord,
  report: Report,
): Partial<Record<Piece, number>> {
  const searches = entry["search_context_cost_per_query"];
  const fileSearches = amount(entry, "file_search_cost_per_1k_calls", report);
  return present({
    audioSeconds:
      amount(entry, "input_cost_per_second", report) ??
      amount(entry, "output_cost_per_second", report),
    characters: amount(entry, "input_cost_per_character", report),
    searchUnits: amount(entry, "input_cost_per_query", report),
    // The size of a search's context is not reported; providers' default is the middle one.
    webSearches: isRecord(searches)
      ? amount(searches, "search_context_size_medium", report)
      : null,
    fileSearches: fileSearches === null ? null : fileSearches / 1_000,
    pages: amount(entry, "ocr_cost_per_page", report),
    annotatedPages: amount(entry, "annotation_cost_per_page", report),
  });
}

function present(
  prices: Readonly<Partial<Record<Piece, number | null>>>,
): Partial<Record<Piece, number>> {
  return Object.fromEntries(
    Object.entries(prices).filter(([, price]) => price !== null),
  ) as Partial<Record<Piece, number>>;
}

/** A service tier costs a few times the standard price. */
const MAX_FACTOR = 1_000;

/** Multiples such as `{"fast": 6, "us": 1.1}`. */
function factorsOf(entry: unknown): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(isRecord(entry) ? entry : {}).filter(
      (pair): pair is [string, number] =>
        typeof pair[1] === "number" && pair[1] >= 0 && pair[1] <= MAX_FACTOR,
    ),
  );
}

/** `input_cost_per_token_above_200k_tokens` and its like are tiers of `input_cost_per_token`; a suffix ends them all. */
function tiered(
  entry: JsonRecord,
  key: string,
  suffix: string,
  report: Report,
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

function amount(entry: JsonRecord, key: string, report: Report): number | null {
  const value = entry[key];
  if (value === undefined || value === null) {
    return null;
  }
  if (isPrice(value)) {
    return value;
  }
  report(
    key,
    `must be dollars, a number from 0 to ${MAX_PRICE}; it is ${JSON.stringify(value)}`,
  );
  return null;
}
