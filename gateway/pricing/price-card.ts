/** Dollars. Any published price is far lower; a higher one is a mistake, whose products with counts need not be finite. */
export const MAX_PRICE = 1_000;

/** Whether a number of dollars may be the price of one token, image, second, … */
export function isPrice(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= MAX_PRICE;
}

/** Dollars per million tokens; tiers are sorted by the input tokens above which they hold. */
export type Price =
  | number
  | {
      readonly base: number;
      readonly tiers: readonly {
        readonly start: number;
        readonly price: number;
      }[];
    };

/**
 * Prices of tokens, and of items billed by the piece. A part of the input (or output) without a separate price is
 * billed at the next coarser one: `cachedAudio` at `cachedInput`, `cacheWrite1h` at `cacheWrite`, others at `input`
 * (or `output`).
 */
export interface Rates {
  /** null: input tokens have no price. */
  readonly input: Price | null;
  /** null: output tokens have no price. */
  readonly output: Price | null;
  readonly cachedInput: Price | null;
  readonly cachedAudio?: Price | null;
  readonly cachedImage?: Price | null;
  readonly cacheWrite: Price | null;
  /** Written into a cache that is kept for an hour. */
  readonly cacheWrite1h?: Price | null;
  readonly audioInput: Price | null;
  readonly imageInput?: Price | null;
  readonly videoInput?: Price | null;
  readonly audioOutput: Price | null;
  readonly imageOutput?: Price | null;
  readonly videoOutput?: Price | null;
  readonly reasoning: Price | null;
  readonly citation?: Price | null;
  /** Dollars for each call. */
  readonly perRequest: number;
  /** Dollars for each image created; null: images have no price. */
  readonly perImage: number | null;
  /** Dollars for each; absent: no price. */
  readonly perPiece?: Readonly<Partial<Record<Piece, number>>>;
}

/** Items billed by the piece, by their count in a call's usage. */
export type Piece =
  | "webSearches"
  | "fileSearches"
  | "pages"
  | "annotatedPages"
  | "audioSeconds"
  | "characters"
  | "searchUnits"
  | "textMessages";

/** By which whole calls are billed; the others add to their tokens. */
export const MEASURED = [
  "audioSeconds",
  "characters",
  "searchUnits",
] as const satisfies readonly Piece[];

/** When rates hold: from a day on (ms since the epoch), or daily between two seconds of the UTC day. */
export type PricePeriod =
  | { readonly kind: "always"; readonly rates: Rates }
  | { readonly kind: "from"; readonly from: number; readonly rates: Rates }
  | {
      readonly kind: "daily";
      readonly start: number;
      readonly end: number;
      readonly rates: Rates;
    };

/** Everything that decides what a deployment's calls cost. */
export interface PriceCard {
  readonly source: "deployment" | "prices_file" | "catalogue" | "local";
  /** The last one that applies holds; the first one when none does. */
  readonly periods: readonly [PricePeriod, ...PricePeriod[]];
  /** What another service tier costs; a tier that is missing has no known price. */
  readonly serviceTiers?: Readonly<Record<string, TierPrice>>;
  /** Priced for this deployment, instead of the tokens of calls that are measured by them. */
  readonly ownPieces?: readonly Piece[];
  /** The model's maximum, where known. */
  readonly maxOutputTokens: number | null;
  readonly contextWindow: number | null;
}

/** A multiple of the standard token prices, or rates that replace some of them. */
export type TierPrice =
  number | Readonly<Partial<Pick<Rates, "input" | "output" | "cachedInput">>>;

/** Rates that price nothing. */
export const UNPRICED: Rates = {
  input: null,
  output: null,
  cachedInput: null,
  cacheWrite: null,
  audioInput: null,
  audioOutput: null,
  reasoning: null,
  perRequest: 0,
  perImage: null,
};

/** A card whose rates do not change with time. */
export function flatCard(source: PriceCard["source"], rates: Rates): PriceCard {
  return {
    source,
    periods: [{ kind: "always", rates }],
    maxOutputTokens: null,
    contextWindow: null,
  };
}

/** Whether a card prices anything that calls are billed by here: tokens, calls, images, seconds, characters or searches. */
export function pricesCalls(card: PriceCard): boolean {
  const { input, output, perRequest, perImage, perPiece } = ratesAt(
    card,
    Date.now(),
  );
  return (
    input !== null ||
    output !== null ||
    perRequest > 0 ||
    perImage !== null ||
    MEASURED.some((piece) => perPiece?.[piece] !== undefined)
  );
}

/** Prices are kept per million tokens, where the usual ones are short decimals and products stay exact. */
export function perMillion(perToken: number | null): number | null {
  return perToken === null ? null : Number((perToken * 1e6).toPrecision(15));
}

/** The rates that hold at a time (ms since the epoch). */
export function ratesAt(card: PriceCard, at: number): Rates {
  if (card.periods.length === 1) {
    return card.periods[0].rates;
  }
  return (
    card.periods.findLast((period) => holds(period, at)) ?? card.periods[0]
  ).rates;
}

/** The rates at which a call that starts now may be billed: a daily window can open while it runs. */
export function ratesForEstimates(
  card: PriceCard,
  now: number,
): readonly Rates[] {
  const current = ratesAt(card, now);
  if (card.periods.length === 1) {
    return [current];
  }
  return [
    current,
    ...card.periods
      .filter((period) => period.kind === "daily")
      .map((period) => period.rates),
  ];
}

const DAY_S = 86_400;

function holds(period: PricePeriod, at: number): boolean {
  switch (period.kind) {
    case "always":
      return true;
    case "from":
      return at >= period.from;
    case "daily": {
      const second = (at / 1_000) % DAY_S;
      return period.end < period.start
        ? second >= period.start || second < period.end
        : second >= period.start && second < period.end;
    }
  }
}
