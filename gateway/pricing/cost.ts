import type { Measure } from "./measure.ts";
import {
  ratesAt,
  ratesForEstimates,
  type Piece,
  type Price,
  type PriceCard,
  type Rates,
} from "./price-card.ts";
import type { Usage } from "../tokens/reported-usage.ts";

/**
 * One line of a bill, as the ledger stores it: what was used, how much of it, its price, and the factor of the service tier
 * where that is not 1. Prices in dollars: per million of what ends in `tokens`, each for everything else.
 */
export type CostLine = readonly [
  part: string,
  used: number,
  price: number,
  factor?: number,
];

export interface Bill {
  /** Dollars, to 15 digits. */
  readonly cost: number;
  /** What it is the sum of. */
  readonly lines: readonly CostLine[];
  /** What was used and has no price (`input_tokens`, `web_searches`, …), or not its own (`service_tier=priority`). */
  readonly unpriced: readonly string[];
}

/**
 * What a call costs, and what of it has no price. `at` (ms since the epoch, default now) decides where prices change
 * with time. Parts that claim more tokens than there are count as far as there are.
 */
export function billOf(
  card: PriceCard,
  usage: Usage,
  at: number = Date.now(),
): Bill {
  const { rates, factor, unknown } = tiersOf(
    card,
    ratesAt(card, at),
    usage.tiers ?? [],
  );
  const tokens = usage.billedBy === undefined ? tokenLines(rates, usage) : [];
  const tokenCost = (sumOf(tokens) * factor) / 1e6;
  const pieces = pieceLines(rates, usage);
  const missing = [...tokens, ...pieces]
    .filter(({ used, price }) => price === null && used > 0)
    .map(({ name }) => name);
  return {
    cost: inDecimal(tokenCost + rates.perRequest + sumOf(pieces)),
    lines: [
      ...pricedLines(tokens, factor),
      ...(rates.perRequest > 0
        ? [["request", 1, rates.perRequest] as const]
        : []),
      ...pricedLines(pieces, 1).filter(([, , price]) => price > 0),
    ],
    // The tiers of a free model are free.
    unpriced: [...new Set([...missing, ...(tokenCost > 0 ? unknown : [])])],
  };
}

function sumOf(lines: readonly Line[]): number {
  return lines.reduce((sum, { used, price }) => sum + used * (price ?? 0), 0);
}

/** Doubles are exact to 15 decimal digits: without those beyond, a cost is the sum of its lines in the ledger as well. */
export function inDecimal(dollars: number): number {
  return Number(dollars.toPrecision(15));
}

function pricedLines(
  lines: readonly Line[],
  factor: number,
): readonly CostLine[] {
  return lines.flatMap(({ part, used, price }): readonly CostLine[] => {
    if (used === 0 || price === null) {
      return [];
    }
    return [factor === 1 ? [part, used, price] : [part, used, price, factor]];
  });
}

/** The dollars of {@link billOf}. */
export function costOf(card: PriceCard, usage: Usage, at?: number): number {
  return billOf(card, usage, at).cost;
}

interface Line {
  /** As callers get it if it has no price. */
  readonly name: string;
  /** As the bill shows it. */
  readonly part: string;
  readonly used: number;
  readonly price: number | null;
}

function tokenLines(rates: Rates, usage: Usage): readonly Line[] {
  const total = usage.inputTokens;
  const or = (price: Price | null | undefined, coarser: number | null) =>
    price == null ? coarser : tier(price, total);
  const input = split(total, {
    cached: usage.cachedInputTokens,
    written: usage.cacheWriteTokens,
    audio: usage.audioInputTokens,
    image: usage.imageInputTokens,
    video: usage.videoInputTokens,
  });
  const cached = split(input.cached, {
    audio: usage.cachedAudioTokens,
    image: usage.cachedImageTokens,
  });
  const written = split(input.written, { hour: usage.cacheWrite1hTokens });
  const output = split(usage.outputTokens, {
    audio: usage.audioOutputTokens,
    image: usage.imageOutputTokens,
    video: usage.videoOutputTokens,
    citation: usage.citationTokens,
    reasoning: usage.reasoningTokens,
  });
  const base = or(rates.input, null);
  const read = or(rates.cachedInput, base);
  const write = or(rates.cacheWrite, base);
  const text = or(rates.output, null);
  const inLine = (part: string, used: number, price: number | null): Line => ({
    name: "input_tokens",
    part,
    used,
    price,
  });
  const outLine = (part: string, used: number, price: number | null): Line => ({
    name: "output_tokens",
    part,
    used,
    price,
  });
  const cachedAudio = or(rates.cachedAudio, read);
  const cachedImage = or(rates.cachedImage, read);
  const hour = or(rates.cacheWrite1h, write);
  return [
    inLine("input_tokens", input.rest, base),
    inLine("cached_input_tokens", cached.rest, read),
    inLine("cached_audio_tokens", cached.audio, cachedAudio),
    inLine("cached_image_tokens", cached.image, cachedImage),
    inLine("cache_write_tokens", written.rest, write),
    inLine("cache_write_1h_tokens", written.hour, hour),
    inLine("audio_input_tokens", input.audio, or(rates.audioInput, base)),
    inLine("image_input_tokens", input.image, or(rates.imageInput, base)),
    inLine("video_input_tokens", input.video, or(rates.videoInput, base)),
    outLine("output_tokens", output.rest, text),
    outLine("audio_output_tokens", output.audio, or(rates.audioOutput, text)),
    outLine("image_output_tokens", output.image, or(rates.imageOutput, text)),
    outLine("video_output_tokens", output.video, or(rates.videoOutput, text)),
    outLine("citation_tokens", output.citation, or(rates.citation, text)),
    outLine("reasoning_tokens", output.reasoning, or(rates.reasoning, text)),
  ];
}

/** Tokens by part in the order of the claims, limited to the total; `rest` is the unclaimed remainder. */
function split<Part extends string>(
  total: number,
  claims: Readonly<Record<Part, number | undefined>>,
): Readonly<Record<Part | "rest", number>> {
  let rest = total;
  const parts: Record<string, number> = {};
  for (const [part, claim] of Object.entries<number | undefined>(claims)) {
    const taken = Math.min(claim ?? 0, rest);
    parts[part] = taken;
    rest -= taken;
  }
  parts["rest"] = rest;
  return parts as Record<Part | "rest", number>;
}

const PIECE_NAMES: Readonly<Record<Piece, string>> = {
  webSearches: "web_searches",
  fileSearches: "file_searches",
  pages: "pages",
  annotatedPages: "annotated_pages",
  audioSeconds: "audio_seconds",
  characters: "characters",
  searchUnits: "search_units",
  textMessages: "text_messages",
};
const PIECES = Object.keys(PIECE_NAMES) as readonly Piece[];

function pieceLines(rates: Rates, usage: Usage): readonly Line[] {
  const images = {
    name: "images",
    part: "images",
    used: usage.images ?? 0,
    // Images whose tokens are reported are paid by their tokens.
    price: rates.perImage ?? (usage.outputTokens > 0 ? 0 : null),
  };
  const pieces = PIECES.map((piece) => ({
    name: PIECE_NAMES[piece],
    part: PIECE_NAMES[piece],
    used: usage[piece] ?? 0,
    price: rates.perPiece?.[piece] ?? null,
  }));
  return [images, ...pieces];
}

/** The rates of a call's service tiers, which add up: the published multiples multiply, own rates replace. */
function tiersOf(
  card: PriceCard,
  standard: Rates,
  tiers: readonly string[],
): {
  readonly rates: Rates;
  readonly factor: number;
  readonly unknown: readonly string[];
} {
  let rates = standard;
  let factor = 1;
  const unknown: string[] = [];
  for (const name of tiers) {
    const price = card.serviceTiers?.[name];
    if (price === undefined) {
      unknown.push(`service_tier=${name}`);
    } else if (typeof price === "number") {
      factor *= price;
    } else {
      rates = { ...rates, ...price };
    }
  }
  return { rates, factor, unknown };
}

/**
 * The worst case of a call in dollars: no cached input, everything written into the cache for as long as possible, all
 * output at the most expensive rate, at the standard price or that of the requested tiers, whichever is higher. Of a call
 * with a `measure`, its tokens or its pieces, whichever cost more.
 */
export function mostExpensive(
  card: PriceCard,
  inputTokens: number,
  outputTokens: number,
  images = 0,
  tiers: readonly string[] = [],
  measure: Measure | null = null,
): number {
  const costs = ratesForEstimates(card, Date.now()).flatMap((standard) =>
    [[], tiers].map((requested) => {
      const { rates, factor } = tiersOf(card, standard, requested);
      const tokens =
        factor * worstTokens(rates, inputTokens, outputTokens, measure);
      const pieces =
        measure === null
          ? 0
          : measure.count * (rates.perPiece?.[measure.piece] ?? 0);
      return (
        rates.perRequest +
        Math.max(tokens, pieces) +
        images * (rates.perImage ?? 0)
      );
    }),
  );
  return Math.max(...costs);
}

function worstTokens(
  rates: Rates,
  inputTokens: number,
  outputTokens: number,
  measure: Measure | null,
): number {
  const most = (...prices: readonly (Price | null | undefined)[]) =>
    Math.max(
      0,
      ...prices.map((price) => (price == null ? 0 : tier(price, inputTokens))),
    );
  const input = most(
    rates.input,
    rates.cacheWrite,
    rates.cacheWrite1h,
    measure?.piece === "audioSeconds" ? rates.audioInput : null,
  );
  const output = most(
    rates.output,
    rates.reasoning,
    rates.citation,
    rates.audioOutput,
    rates.imageOutput,
    rates.videoOutput,
  );
  return (inputTokens * input + outputTokens * output) / 1e6;
}

/** Above a tier's start, its price holds for all tokens of the call. */
function tier(price: Price, inputTokens: number): number {
  if (typeof price === "number") {
    return price;
  }
  let rate = price.base;
  for (const step of price.tiers) {
    if (inputTokens > step.start) {
      rate = step.price;
    }
  }
  return rate;
}
