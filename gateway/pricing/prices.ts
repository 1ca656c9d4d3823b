import type { Deployment, PriceOverrides } from "../config/types.ts";
import { cataloguePrices } from "./price-catalogue.ts";
import {
  flatCard,
  perMillion,
  type Piece,
  type PriceCard,
  type PricePeriod,
  type Rates,
} from "./price-card.ts";
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
 * price does not outlive it, so that an input price of 0 is 0 for cached input too. Nor do the service tiers, which
 * multiply both sides.
 */
function overridden(own: PriceOverrides, base: PriceCard | null): PriceCard {
  const pieces = ownPiecesOf(own);
  const keepsTokenPrices = own.input === null && own.output === null;
  const [first, ...later] = (base ?? FREE).periods;
  const withOwn = (period: PricePeriod): PricePeriod => ({
    ...period,
    rates: overriddenRates(own, base && period.rates, pieces),
  });
  return {
    source: "deployment",
    periods: [withOwn(first), ...later.map(withOwn)],
    ...(keepsTokenPrices
      ? { ownPieces: Object.keys(pieces) as readonly Piece[] }
      : {}),
    serviceTiers: {
      ...(keepsTokenPrices ? base?.serviceTiers : {}),
      ...own.serviceTiers,
    },
    maxOutputTokens: base?.maxOutputTokens ?? null,
    contextWindow: base?.contextWindow ?? null,
  };
}

function ownPiecesOf(own: PriceOverrides): Partial<Record<Piece, number>> {
  return {
    ...(own.perSecond === null ? {} : { audioSeconds: own.perSecond }),
    ...(own.perCharacter === null ? {} : { characters: own.perCharacter }),
    ...(own.perQuery === null ? {} : { searchUnits: own.perQuery }),
  };
}

/** `lower`: of the card below; null: there is none. */
function overriddenRates(
  own: PriceOverrides,
  lower: Rates | null,
  ownPieces: Partial<Record<Piece, number>>,
): Rates {
  const inputSide = own.input === null ? lower : null;
  const outputSide = own.output === null ? lower : null;
  return {
    input: perMillion(own.input) ?? inputSide?.input ?? 0,
    output: perMillion(own.output) ?? outputSide?.output ?? 0,
    cachedInput: perMillion(own.cacheRead) ?? inputSide?.cachedInput ?? null,
    cachedAudio: inputSide?.cachedAudio ?? null,
    cachedImage: inputSide?.cachedImage ?? null,
    cacheWrite: perMillion(own.cacheWrite) ?? inputSide?.cacheWrite ?? null,
    cacheWrite1h:
      perMillion(own.cacheWrite1h) ?? inputSide?.cacheWrite1h ?? null,
    audioInput: perMillion(own.audioInput) ?? inputSide?.audioInput ?? null,
    imageInput: perMillion(own.imageInput) ?? inputSide?.imageInput ?? null,
    videoInput: inputSide?.videoInput ?? null,
    audioOutput: perMillion(own.audioOutput) ?? outputSide?.audioOutput ?? null,
    imageOutput: perMillion(own.imageOutput) ?? outputSide?.imageOutput ?? null,
    videoOutput: outputSide?.videoOutput ?? null,
    reasoning: perMillion(own.reasoning) ?? outputSide?.reasoning ?? null,
    citation: outputSide?.citation ?? null,
    perRequest: own.perRequest ?? lower?.perRequest ?? 0,
    perImage: own.perImage ?? lower?.perImage ?? null,
    perPiece: { ...lower?.perPiece, ...ownPieces },
  };
}
