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

/** null: the plain input (or output) rate holds. */
export interface Rates {
  readonly input: Price;
  readonly output: Price;
  readonly cachedInput: Price | null;
  readonly cacheWrite: Price | null;
  readonly audioInput: Price | null;
  readonly audioOutput: Price | null;
  readonly reasoning: Price | null;
  /** Dollars for each call. */
  readonly perRequest: number;
  /** Dollars for each image made. */
  readonly perImage: number;
}

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
  /** The model's maximum, where known. */
  readonly maxOutputTokens: number | null;
  readonly contextWindow: number | null;
}

/** A card whose rates do not change with time. */
export function flatCard(source: PriceCard["source"], rates: Rates): PriceCard {
  return {
    source,
    periods: [{ kind: "always", rates }],
    maxOutputTokens: null,
    contextWindow: null,
  };
}

/** Prices are kept per million tokens, where the usual ones are short decimals and products stay exact. */
export function perMillion(perToken: number | null): number | null {
  return perToken === null ? null : Number((perToken * 1e6).toPrecision(15));
}

/** The rates that hold at a time (ms since the epoch). */
export function ratesAt(card: PriceCard, at: number): Rates {
  if (card.periods.length === 1) return card.periods[0].rates;
  return (
    card.periods.findLast((period) => holds(period, at)) ?? card.periods[0]
  ).rates;
}

/** The rates that a call which begins now may be billed at: a daily window can open while it runs. */
export function ratesForEstimates(
  card: PriceCard,
  now: number,
): readonly Rates[] {
  const current = ratesAt(card, now);
  if (card.periods.length === 1) return [current];
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
