import { readFileSync } from "node:fs";
import { textOf } from "../../core/failure.ts";
import type { ConfigProblem } from "../../core/config/problem.ts";
import type { Deployment } from "../config/types.ts";
import {
  flatCard,
  UNPRICED,
  type PriceCard,
  type Rates,
} from "./price-card.ts";
import { pricesIn, type ReportPrice } from "./price-fields.ts";
import { isRecord, type JsonRecord } from "../../core/json.ts";
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

function readEntries(file: string, report: ReportPrice): JsonRecord {
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

function cardOf(entry: JsonRecord, report: ReportPrice): PriceCard {
  const own = pricesIn(entry, report);
  const { input, output } = own.rates;
  const rates: Rates = {
    ...UNPRICED,
    ...own.rates,
    // With only one of the two, the other side is free; with neither, tokens have no price.
    input: input ?? (output === undefined ? null : 0),
    output: output ?? (input === undefined ? null : 0),
    perRequest: own.perRequest ?? 0,
    perImage: own.perImage,
    perPiece: own.perPiece,
  };
  return {
    ...flatCard("prices_file", rates),
    serviceTiers: {
      ...factorsOf(entry["provider_specific_entry"]),
      ...own.serviceTiers,
    },
    ...tokenLimitsOf(entry),
  };
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
