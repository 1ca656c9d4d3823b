import {
  calcPrice,
  findProvider,
  type ConditionalPrice,
  type ModelInfo,
  type ModelPrice,
} from "@pydantic/genai-prices";
import { guessProvider, PROVIDERS } from "../config/providers.ts";
import type { Deployment } from "../config/types.ts";
import {
  UNPRICED,
  type Piece,
  type PriceCard,
  type PricePeriod,
  type Rates,
} from "./price-card.ts";
import { publishedTiers } from "./service-tiers.ts";

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

/** Names of providers that only say how a server is called: its models are known by their own names. */
const PROXIES: ReadonlySet<string> = new Set([
  "custom_openai",
  "litellm_proxy",
  "openai_like",
]);

/**
 * The prices of the pinned catalogue, which is in the package: its updater stays off and nothing is fetched.
 * null when the provider or the model is not in it.
 */
export function cataloguePrices(deployment: Deployment): PriceCard | null {
  const byAddress =
    deployment.apiBase === ""
      ? undefined
      : findProvider({ providerApiUrl: deployment.apiBase });
  const name = catalogueName(deployment);
  const providerId = byAddress?.id ?? findProvider({ providerId: name })?.id;
  if (providerId === undefined) {
    return null;
  }
  for (const model of modelNames(deployment)) {
    const found = calcPrice({}, model, { providerId });
    if (found !== null) {
      return cardOf(found.model, providerId);
    }
  }
  return null;
}

function catalogueName({ providerName, model }: Deployment): string {
  return (
    (PROXIES.has(providerName) ? guessProvider(model) : null) ??
    CATALOGUE_NAMES.get(providerName) ??
    providerName
  );
}

/** The configuration's name of the provider that publishes a model; null: neither the catalogue nor its name says which. */
export function publisherOf(model: string): string | null {
  const known = publishers.get(model);
  if (known !== undefined) {
    return known;
  }
  const id = calcPrice({}, model)?.provider.id;
  const name = id === undefined ? guessProvider(model) : configuredName(id);
  if (publishers.size < MAX_PUBLISHERS) {
    publishers.set(model, name);
  }
  return name;
}

/** Where the catalogue's name is not a provider's of the configuration, the one that means it. */
function configuredName(id: string): string {
  const [renamed] = Object.hasOwn(PROVIDERS, id)
    ? []
    : ([...CATALOGUE_NAMES].find(([, theirs]) => theirs === id) ?? []);
  return renamed ?? id;
}

const publishers = new Map<string, string | null>();
/** Names come from callers. */
const MAX_PUBLISHERS = 10_000;

/** The models that the catalogue has of a provider, by the configuration's name. */
export function publishedModels(provider: string): readonly string[] {
  const providerId = CATALOGUE_NAMES.get(provider) ?? provider;
  return findProvider({ providerId })?.models.map(({ id }) => id) ?? [];
}

/**
 * The prices of a model that no deployment has, by its own name or with the provider before a slash; null: not in the
 * catalogue.
 */
export function publishedPrices(name: string): PriceCard | null {
  const slash = name.indexOf("/");
  const provider = slash < 0 ? guessProvider(name) : name.slice(0, slash);
  const providerId = CATALOGUE_NAMES.get(provider ?? "") ?? provider;
  const found =
    calcPrice({}, name) ??
    (providerId && findProvider({ providerId }) !== undefined
      ? calcPrice({}, name.slice(slash + 1), { providerId })
      : null);
  return found === null ? null : cardOf(found.model, found.provider.id);
}

/** `base_model` first, since Azure's deployment names do not identify a model; it may have a provider's prefix. */
function modelNames({ baseModel, model }: Deployment): readonly string[] {
  if (baseModel === null) {
    return [model];
  }
  const slash = baseModel.indexOf("/");
  return [baseModel, ...(slash < 0 ? [] : [baseModel.slice(slash + 1)]), model];
}

function cardOf(model: ModelInfo, providerId: string): PriceCard {
  const prices = Array.isArray(model.prices)
    ? model.prices
    : [{ prices: model.prices }];
  const [first, ...rest] = prices.map(periodOf);
  if (first === undefined) {
    throw new Error(`the price catalogue has no price for ${model.id}`);
  }
  return {
    source: "catalogue",
    periods: [first, ...rest],
    serviceTiers: publishedTiers(providerId, model.id),
    maxOutputTokens: null,
    contextWindow: model.context_window ?? null,
  };
}

function periodOf({ constraint, prices }: ConditionalPrice): PricePeriod {
  const rates = catalogueRates(prices);
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

/** The catalogue's prices of tokens, in dollars per million. */
const TOKEN_PRICES = {
  input_mtok: "input",
  output_mtok: "output",
  cache_read_mtok: "cachedInput",
  cache_audio_read_mtok: "cachedAudio",
  cache_image_read_mtok: "cachedImage",
  cache_write_mtok: "cacheWrite",
  cache_write_1h_mtok: "cacheWrite1h",
  input_audio_mtok: "audioInput",
  input_image_mtok: "imageInput",
  input_video_mtok: "videoInput",
  output_audio_mtok: "audioOutput",
  output_image_mtok: "imageOutput",
  output_video_mtok: "videoOutput",
  output_reasoning_mtok: "reasoning",
  output_citation_mtok: "citation",
} as const;

/** Its prices of pieces, and how many it counts as one. `audio_hours` is for both directions and the older name. */
const PIECE_PRICES = {
  web_searches_kcount: ["webSearches", 1_000],
  storage_searches_kcount: ["fileSearches", 1_000],
  input_document_kpages: ["pages", 1_000],
  input_annotated_document_kpages: ["annotatedPages", 1_000],
  input_text_messages_kcount: ["textMessages", 1_000],
  input_mchars: ["characters", 1_000_000],
  rerank_searches_kcount: ["searchUnits", 1_000],
  input_audio_hours: ["audioSeconds", 3_600],
  audio_hours: ["audioSeconds", 3_600],
} as const satisfies Readonly<Record<string, readonly [Piece, number]>>;

const REQUESTS = "requests_kcount";

/** Every price of the catalogue that is read here; a test fails on one that is not. */
export const CATALOGUE_FIELDS: ReadonlySet<string> = new Set([
  ...Object.keys(TOKEN_PRICES),
  ...Object.keys(PIECE_PRICES),
  REQUESTS,
]);

export function catalogueRates(prices: ModelPrice): Rates {
  // A model without any price is free of charge, as the catalogue's comments on such models say.
  const none = Object.keys(prices).length === 0 ? 0 : null;
  const tokens = Object.entries(TOKEN_PRICES).flatMap(([field, rate]) => {
    const price = prices[field];
    return price === undefined ? [] : [[rate, price] as const];
  });
  const dollars = (field: string): number | null => {
    const price = prices[field] ?? null;
    return typeof price === "object" ? (price?.base ?? null) : price;
  };
  const pieces = Object.entries(PIECE_PRICES).flatMap(
    ([field, [piece, count]]) => {
      const price = dollars(field);
      return price === null ? [] : [[piece, price / count] as const];
    },
  );
  return {
    ...UNPRICED,
    input: none,
    output: none,
    ...(Object.fromEntries(tokens) as Partial<Rates>),
    perRequest: (dollars(REQUESTS) ?? 0) / 1_000,
    perImage: none,
    perPiece: Object.fromEntries(pieces) as Partial<Record<Piece, number>>,
  };
}
