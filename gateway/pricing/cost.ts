import type { Measure } from "./measure.ts";
import {
  ratesAt,
  ratesForEstimates,
  type Piece,
  type Price,
  type PriceCard,
  type Rates,
} from "./price-card.ts";
import type { OtherUsage, Usage } from "../tokens/reported-usage.ts";
import { publishedPrices } from "./price-catalogue.ts";

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
  /** The provider says that it charges this; absent: it follows from prices. */
  readonly reported?: true;
}

/**
 * What a call costs, and what of it has no price. `at` (ms since the epoch, default now) decides where prices change
 * with time. Parts that claim more tokens than there are count as far as there are. Other models that took part have their
 * published prices, or none where the call's own model is free.
 */
export function billOf(
  card: PriceCard,
  usage: Usage,
  at: number = Date.now(),
): Bill {
  const own = ownBill(card, usage, at);
  const { others = [] } = usage;
  if (own.cost === 0 || others.length === 0) {
    return own;
  }
  const bills = [own, ...others.map((other) => billOfOther(other, at))];
  return {
    cost: inDecimal(bills.reduce((sum, { cost }) => sum + cost, 0)),
    lines: bills.flatMap(({ lines }) => lines),
    unpriced: bills.flatMap(({ unpriced }) => unpriced),
  };
}

/** Its parts are named after the model. */
function billOfOther({ model, usage }: OtherUsage, at: number): Bill {
  const card = publishedPrices(model);
  if (card === null) {
    return { cost: 0, lines: [], unpriced: [model] };
  }
  const { cost, lines, unpriced } = ownBill(card, usage, at);
  return {
    cost,
    lines: lines.map(([part, ...line]) => [`${model} ${part}`, ...line]),
    unpriced: unpriced.map((part) => `${model} ${part}`),
  };
}

/** Without other models. */
function ownBill(card: PriceCard, usage: Usage, at: number): Bill {
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
  const priced: CostLine[] = [];
  for (const { part, used, price } of lines) {
    if (price !== null) {
      priced.push(
        factor === 1 ? [part, used, price] : [part, used, price, factor],
      );
    }
  }
  return priced;
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

/** What was used; a call uses few of the parts that have prices. */
function tokenLines(rates: Rates, usage: Usage): readonly Line[] {
  const total = usage.inputTokens;
  const input = new Remainder(total);
  const cached = new Remainder(input.take(usage.cachedInputTokens));
  const written = new Remainder(input.take(usage.cacheWriteTokens));
  const audioInput = input.take(usage.audioInputTokens);
  const imageInput = input.take(usage.imageInputTokens);
  const videoInput = input.take(usage.videoInputTokens);
  const cachedAudio = cached.take(usage.cachedAudioTokens);
  const cachedImage = cached.take(usage.cachedImageTokens);
  const writtenForHour = written.take(usage.cacheWrite1hTokens);
  const output = new Remainder(usage.outputTokens);
  const audioOutput = output.take(usage.audioOutputTokens);
  const imageOutput = output.take(usage.imageOutputTokens);
  const videoOutput = output.take(usage.videoOutputTokens);
  const citation = output.take(usage.citationTokens);
  const reasoning = output.take(usage.reasoningTokens);

  const or = (price: Price | null | undefined, coarser: number | null) =>
    price == null ? coarser : tier(price, total);
  const lines: Line[] = [];
  const add = (
    name: Line["name"],
    part: string,
    used: number,
    price: Price | null | undefined,
    coarser: number | null,
  ) => {
    if (used !== 0) {
      lines.push({ name, part, used, price: or(price, coarser) });
    }
  };
  const inLine = add.bind(null, "input_tokens");
  const base = or(rates.input, null);
  const read = or(rates.cachedInput, base);
  const write = or(rates.cacheWrite, base);
  inLine("input_tokens", input.rest, rates.input, null);
  inLine("cached_input_tokens", cached.rest, rates.cachedInput, base);
  inLine("cached_audio_tokens", cachedAudio, rates.cachedAudio, read);
  inLine("cached_image_tokens", cachedImage, rates.cachedImage, read);
  inLine("cache_write_tokens", written.rest, rates.cacheWrite, base);
  inLine("cache_write_1h_tokens", writtenForHour, rates.cacheWrite1h, write);
  inLine("audio_input_tokens", audioInput, rates.audioInput, base);
  inLine("image_input_tokens", imageInput, rates.imageInput, base);
  inLine("video_input_tokens", videoInput, rates.videoInput, base);
  const outLine = add.bind(null, "output_tokens");
  const text = or(rates.output, null);
  outLine("output_tokens", output.rest, rates.output, null);
  outLine("audio_output_tokens", audioOutput, rates.audioOutput, text);
  outLine("image_output_tokens", imageOutput, rates.imageOutput, text);
  outLine("video_output_tokens", videoOutput, rates.videoOutput, text);
  outLine("citation_tokens", citation, rates.citation, text);
  outLine("reasoning_tokens", reasoning, rates.reasoning, text);
  return lines;
}

/** Tokens of which parts are claimed, one after the other: each claim gets at most what is left. */
class Remainder {
  rest: number;

  constructor(total: number) {
    this.rest = total;
  }

  take(claim: number | undefined): number {
    const taken = Math.min(claim ?? 0, this.rest);
    this.rest -= taken;
    return taken;
  }
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
  const lines: Line[] = [];
  const { images = 0 } = usage;
  if (images !== 0) {
    // Images whose tokens are reported are paid by their tokens.
    const price = rates.perImage ?? (usage.outputTokens > 0 ? 0 : null);
    lines.push({ name: "images", part: "images", used: images, price });
  }
  for (const piece of PIECES) {
    const used = usage[piece] ?? 0;
    if (used !== 0) {
      const name = PIECE_NAMES[piece];
      const price = rates.perPiece?.[piece] ?? null;
      lines.push({ name, part: name, used, price });
    }
  }
  return lines;
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

/** What a call may use, at most. */
interface ExpectedUse {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Of the input; default: all of what is priced by the second of audio. */
  readonly audioInputTokens?: number;
  readonly images?: number;
  readonly webSearches?: number;
  readonly fileSearches?: number;
  /** Requested service tiers. */
  readonly tiers?: readonly string[];
  /** null: it is priced by tokens. */
  readonly measure?: Measure | null;
}

/**
 * The worst case of a call in dollars: no cached input, everything written into the cache for as long as possible, all
 * output at the most expensive rate, at the standard price or that of the requested tiers, whichever is higher. Of a call
 * with a `measure`, its tokens or its pieces, whichever cost more.
 */
export function mostExpensive(card: PriceCard, use: ExpectedUse): number {
  const { images = 0, tiers = [], measure = null } = use;
  const { webSearches = 0, fileSearches = 0 } = use;
  const costs = ratesForEstimates(card, Date.now()).flatMap((standard) =>
    [[], tiers].map((requested) => {
      const { rates, factor } = tiersOf(card, standard, requested);
      const tokens = factor * worstTokens(rates, use);
      const pieces =
        measure === null
          ? 0
          : measure.count * (rates.perPiece?.[measure.piece] ?? 0);
      return (
        rates.perRequest +
        Math.max(tokens, pieces) +
        images * (rates.perImage ?? 0) +
        webSearches * (rates.perPiece?.webSearches ?? 0) +
        fileSearches * (rates.perPiece?.fileSearches ?? 0)
      );
    }),
  );
  return Math.max(...costs);
}

/** Whether tokens of the output cost anything. */
export function pricesOutput(card: PriceCard): boolean {
  const costOfOutput = (outputTokens: number) =>
    mostExpensive(card, { inputTokens: 0, outputTokens });
  return costOfOutput(1) > costOfOutput(0);
}

function worstTokens(
  rates: Rates,
  {
    inputTokens,
    outputTokens,
    measure,
    audioInputTokens = measure?.piece === "audioSeconds" ? inputTokens : 0,
  }: ExpectedUse,
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
    rates.imageInput,
  );
  const audioSurcharge = Math.max(0, most(rates.audioInput) - input);
  const output = most(
    rates.output,
    rates.reasoning,
    rates.citation,
    rates.audioOutput,
    rates.imageOutput,
    rates.videoOutput,
  );
  return (
    (inputTokens * input +
      audioInputTokens * audioSurcharge +
      outputTokens * output) /
    1e6
  );
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
