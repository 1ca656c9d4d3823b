import type { Deployment } from "../config/types.ts";
import { cataloguePrices } from "./price-catalogue.ts";
import {
  flatCard,
  MEASURED,
  type Piece,
  type PriceCard,
  type PricePeriod,
  type Rates,
  UNPRICED,
} from "./price-card.ts";
import type { OwnPrices } from "./price-fields.ts";
import type { FilePrices } from "./price-file.ts";
import { isKnownRunner, isLocalRunner } from "./local-runner.ts";

export interface PriceBook {
  /**
   * The prices of a deployment, looked up once each; null: unknown, its calls cost 0 and are shown as
   * unpriced. `model` is what a wildcard deployment was called for; default: the deployment's own.
   */
  priceFor(deployment: Deployment, model?: string): PriceCard | null;
}

/** Wildcard deployments can be called with any number of model names. */
const MAX_MODELS = 1_000;

/**
 * The order of resolution: the deployment's own prices, `prices_file`, the catalogue. Known runners cost 0 unless priced, and
 * so do models at private addresses that the catalogue does not list.
 */
export function createPriceBook(file: FilePrices | null): PriceBook {
  const known = new WeakMap<Deployment, Map<string, PriceCard | null>>();
  return {
    priceFor(deployment, model = deployment.model) {
      const cards =
        known.get(deployment) ?? new Map<string, PriceCard | null>();
      known.set(deployment, cards);
      const card = cards.get(model);
      if (card !== undefined) {
        return card;
      }
      const resolved = resolve({ ...deployment, model }, file);
      if (cards.size < MAX_MODELS) {
        cards.set(model, resolved);
      }
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
    (isKnownRunner(deployment) ? FREE : cataloguePrices(deployment)) ??
    (isLocalRunner(deployment) ? FREE : null);
  return deployment.prices === null
    ? base
    : overridden(deployment.prices, base);
}

const FREE: PriceCard = flatCard("local", {
  ...UNPRICED,
  input: 0,
  output: 0,
  perImage: 0,
});

/**
 * An overridden input or output price takes its whole side: a discount or surcharge that belonged to the replaced
 * price does not outlive it, so that an input price of 0 is 0 for cached input too. Nor do the service tiers, which
 * multiply both sides.
 */
function overridden(own: OwnPrices, base: PriceCard | null): PriceCard {
  const keepsTokenPrices =
    own.rates.input === undefined && own.rates.output === undefined;
  const [first, ...later] = (base ?? FREE).periods;
  // Tokens of a runner that is paid by the second are not free: its chats have no price.
  const keepsBase = !(base?.source === "local" && isMeasuredOnly(own));
  const withOwn = (period: PricePeriod): PricePeriod => ({
    ...period,
    rates: overriddenRates(own, base && keepsBase ? period.rates : null),
  });
  return {
    source: "deployment",
    periods: [withOwn(first), ...later.map(withOwn)],
    ...(keepsTokenPrices
      ? { ownPieces: Object.keys(own.perPiece) as readonly Piece[] }
      : {}),
    serviceTiers: {
      ...(keepsTokenPrices ? base?.serviceTiers : {}),
      ...own.serviceTiers,
    },
    maxOutputTokens: base?.maxOutputTokens ?? null,
    contextWindow: base?.contextWindow ?? null,
  };
}

/** Whether the only prices are of what whole calls are billed by: seconds, characters or searches. */
function isMeasuredOnly({ rates, perRequest, perImage, perPiece }: OwnPrices) {
  return (
    Object.keys(rates).length === 0 &&
    perRequest === null &&
    perImage === null &&
    MEASURED.some((piece) => perPiece[piece] !== undefined)
  );
}

const INPUT_SIDE = [
  "input",
  "cachedInput",
  "cachedAudio",
  "cachedImage",
  "cacheWrite",
  "cacheWrite1h",
  "audioInput",
  "imageInput",
  "videoInput",
] as const satisfies readonly (keyof Rates)[];

const OUTPUT_SIDE = [
  "output",
  "audioOutput",
  "imageOutput",
  "videoOutput",
  "reasoning",
  "citation",
] as const satisfies readonly (keyof Rates)[];

/** `lower`: of the card below; null: there is none. */
function overriddenRates(own: OwnPrices, lower: Rates | null): Rates {
  const replaced: readonly string[] = [
    ...(own.rates.input === undefined ? [] : INPUT_SIDE),
    ...(own.rates.output === undefined ? [] : OUTPUT_SIDE),
  ];
  const kept = Object.fromEntries(
    Object.entries(lower ?? {}).filter(([rate]) => !replaced.includes(rate)),
  ) as Partial<Rates>;
  const rates: Rates = { ...UNPRICED, ...kept, ...own.rates };
  const unset = isMeasuredOnly(own) ? null : 0;
  return {
    ...rates,
    input: rates.input ?? unset,
    output: rates.output ?? unset,
    perRequest: own.perRequest ?? rates.perRequest,
    perImage: own.perImage ?? rates.perImage,
    perPiece: { ...rates.perPiece, ...own.perPiece },
  };
}
