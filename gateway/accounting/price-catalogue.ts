import {
  calcPrice,
  findProvider,
  type ConditionalPrice,
  type ModelInfo,
  type ModelPrice,
} from "@pydantic/genai-prices";
import type { Deployment } from "../config/types.ts";
import type { Price, PriceCard, PricePeriod, Rates } from "./price-card.ts";

/** The catalogue's names of providers, where they differ from the configuration's. */
const CATALOGUE_NAMES: ReadonlyMap<string, string> = new Map([
  ["gemini", "google"],
  ["codestral", "mistral"],
  ["text-completion-openai", "openai"],
  ["together_ai", "together"],
  ["fireworks_ai", "fireworks"],
  ["xai", "x-ai"],
  ["moonshot", "moonshotai"],
]);

/**
 * The prices of the pinned catalogue, which lies in the package: its updater stays off and nothing is fetched.
 * null when the provider or the model is not in it.
 */
export function cataloguePrices(deployment: Deployment): PriceCard | null {
  const byAddress =
    deployment.apiBase === ""
      ? undefined
      : findProvider({ providerApiUrl: deployment.apiBase });
  const name =
    CATALOGUE_NAMES.get(deployment.providerName) ?? deployment.providerName;
  const providerId = byAddress?.id ?? findProvider({ providerId: name })?.id;
  if (providerId === undefined) return null;
  for (const model of modelNames(deployment)) {
    const found = calcPrice({}, model, { providerId });
    if (found !== null) return cardOf(found.model);
  }
  return null;
}

/** `base_model` first, since Azure's deployment names say nothing; it may carry a provider's prefix. */
function modelNames({ baseModel, model }: Deployment): readonly string[] {
  if (baseModel === null) return [model];
  const slash = baseModel.indexOf("/");
  return [baseModel, ...(slash < 0 ? [] : [baseModel.slice(slash + 1)]), model];
}

function cardOf(model: ModelInfo): PriceCard {
  const prices = Array.isArray(model.prices)
    ? model.prices
    : [{ prices: model.prices }];
  const [first, ...rest] = prices.map(periodOf);
  if (first === undefined)
    throw new Error(`the price catalogue has no price for ${model.id}`);
  return {
    source: "catalogue",
    periods: [first, ...rest],
    maxOutputTokens: null,
    contextWindow: model.context_window ?? null,
  };
}

function periodOf({ constraint, prices }: ConditionalPrice): PricePeriod {
  const rates = ratesOf(prices);
  switch (constraint?.type) {
    case undefined:
      return { kind: "always", rates };
    case "start_date":
      return { kind: "from", from: Date.parse(constraint.start_date), rates };
    case "time_of_date":
      return {
        kind: "daily",
        start: secondOfDay(constraint.start_time),
        end: secondOfDay(constraint.end_time),
        rates,
      };
  }
}

/** Seconds of the UTC day of a time such as `16:30:00Z` or `00:30:00+08:00`. */
function secondOfDay(time: string): number {
  return (Date.parse(`2000-01-02T${time}`) / 1_000) % 86_400;
}

function ratesOf(prices: ModelPrice): Rates {
  const price = (key: string): Price | null => prices[key] ?? null;
  const perThousand = (key: string): number => {
    const value = prices[key];
    return typeof value === "number" ? value / 1_000 : 0;
  };
  return {
    input: price("input_mtok") ?? 0,
    output: price("output_mtok") ?? 0,
    cachedInput: price("cache_read_mtok"),
    cacheWrite: price("cache_write_mtok"),
    audioInput: price("input_audio_mtok"),
    audioOutput: price("output_audio_mtok"),
    reasoning: price("output_reasoning_mtok"),
    perRequest: perThousand("requests_kcount"),
    perImage: 0,
  };
}
