import { isRecord, type JsonRecord } from "../../core/json.ts";
import type { Piece } from "../pricing/price-card.ts";

/**
 * Tokens of one call. `inputTokens` includes cached, cache-write, audio, image and video input; `outputTokens` includes
 * audio, image, video, reasoning and citation output. The parts of the input do not overlap, nor do those of the output.
 */
export interface Usage extends Readonly<Partial<Record<Piece, number>>> {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Read from the provider's prompt cache. */
  readonly cachedInputTokens: number;
  /** Of the cached ones: audio and images. */
  readonly cachedAudioTokens?: number;
  readonly cachedImageTokens?: number;
  /** Written into the provider's prompt cache. */
  readonly cacheWriteTokens: number;
  /** Of those written: for an hour. */
  readonly cacheWrite1hTokens?: number;
  readonly audioInputTokens: number;
  readonly imageInputTokens?: number;
  readonly videoInputTokens?: number;
  readonly audioOutputTokens: number;
  readonly imageOutputTokens?: number;
  readonly videoOutputTokens?: number;
  readonly reasoningTokens: number;
  readonly citationTokens?: number;
  /** Images created by an image route; absent: none. */
  readonly images?: number;
  /** The piece that alone is billed, without the tokens; absent: everything with a price. */
  readonly billedBy?: Piece;
  /** Dollars that the answer names as the cost of the call; absent: none. */
  readonly reportedCost?: number;
  /** Derived from the size of a file or an answer, without a report of the provider. */
  readonly estimated?: boolean;
  /** Service tiers other than the standard one, such as `flex`; absent: none. */
  readonly tiers?: readonly string[];
  /** Of other models, which the provider asked during the call and bills at their own prices; absent: none. */
  readonly others?: readonly OtherUsage[];
}

export interface OtherUsage {
  readonly model: string;
  readonly usage: Usage;
}

const NOTHING: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  audioInputTokens: 0,
  audioOutputTokens: 0,
  reasoningTokens: 0,
};

/** The usage of a call of which only the input is known. */
export function inputOnly(
  inputTokens: number,
  tiers: readonly string[] = [],
): Usage {
  return {
    ...NOTHING,
    inputTokens,
    ...(tiers.length === 0 ? {} : { tiers }),
  };
}

/**
 * Reads the `usage` object of an OpenAI-style answer (chat, completions, embeddings, responses, images, transcriptions).
 * Missing and malformed counts are 0; null when there is no usage at all.
 */
export function usageFromOpenAI(json: unknown): Usage | null {
  if (!isRecord(json)) {
    return null;
  }
  const pieces = piecesOf(json);
  const input = count(json["prompt_tokens"]) ?? count(json["input_tokens"]);
  const total = count(json["total_tokens"]);
  const output =
    count(json["completion_tokens"]) ??
    count(json["output_tokens"]) ??
    (input !== null && total !== null ? Math.max(0, total - input) : null);
  const cost = reportedCost(json);
  const further = cost === null ? pieces : { ...pieces, reportedCost: cost };
  if (input === null && output === null) {
    return Object.keys(further).length === 0
      ? null
      : { ...NOTHING, ...further };
  }
  return {
    ...NOTHING,
    ...inputOf(json, input ?? 0),
    ...outputParts(
      json,
      output ?? 0,
      total === null ? null : total - (input ?? 0),
    ),
    ...further,
  };
}

/**
 * The same of an answer without output, such as embeddings: some report only a total (Voyage), others zeros, which count as no report
 * (LM Studio: https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1546).
 */
export function inputUsageFromOpenAI(json: unknown): Usage | null {
  const usage = usageFromOpenAI(json) ?? NOTHING;
  const total = isRecord(json) ? count(json["total_tokens"]) : null;
  const inputTokens = Math.max(usage.inputTokens, total ?? 0);
  return inputTokens === 0 && usage.reportedCost === undefined
    ? null
    : { ...usage, inputTokens, outputTokens: 0 };
}

const TICKS_PER_DOLLAR = 1e10;
/** More than any call costs. */
const MAX_DOLLARS = 1e6;

/**
 * What an answer says that the call costs.
 * - xAI: https://docs.x.ai/developers/cost-tracking
 * - OpenRouter; what the operator's own key at a provider is charged comes on top:
 *   https://openrouter.ai/docs/use-cases/usage-accounting
 * - Perplexity: https://docs.perplexity.ai/api-reference/chat-completions-post
 */
function reportedCost(json: JsonRecord): number | null {
  const ticks = json["cost_in_usd_ticks"];
  if (typeof ticks === "number") {
    return dollars(ticks / TICKS_PER_DOLLAR);
  }
  const cost = dollars(json["cost"]);
  if (cost === null) {
    return dollars(firstRecord(json["cost"])["total_cost"]);
  }
  const details = firstRecord(json["cost_details"]);
  return json["is_byok"] === true
    ? cost + (dollars(details["upstream_inference_cost"]) ?? 0)
    : cost;
}

function dollars(value: unknown): number | null {
  return typeof value === "number" && value >= 0 && value <= MAX_DOLLARS
    ? value
    : null;
}

/**
 * The input and its parts. More cached tokens than input are not part of it: a relay passes on the counts of Anthropic, which add up.
 * https://platform.claude.com/docs/en/build-with-claude/prompt-caching#tracking-cache-performance
 */
function inputOf(
  json: JsonRecord,
  input: number,
): Partial<Usage> & Pick<Usage, "inputTokens"> {
  const parts = inputParts(json);
  const cached = parts.cachedInputTokens + parts.cacheWriteTokens;
  return {
    ...parts,
    inputTokens: cached > input ? Math.min(MAX_TOKENS, input + cached) : input,
  };
}

function inputParts(
  json: JsonRecord,
): Partial<Usage> & Pick<Usage, "cachedInputTokens" | "cacheWriteTokens"> {
  const details = firstRecord(
    json["prompt_tokens_details"],
    json["input_tokens_details"],
    // Of transcriptions: https://platform.openai.com/docs/api-reference/audio/json-object
    json["input_token_details"],
  );
  const cachedDetails = firstRecord(details["cached_tokens_details"]);
  const cachedAudio = count(cachedDetails["audio_tokens"]) ?? 0;
  const cachedImage = count(cachedDetails["image_tokens"]) ?? 0;
  const plain = (name: string, cached: number) =>
    Math.max(0, (count(details[name]) ?? 0) - cached);
  return {
    cachedInputTokens:
      count(details["cached_tokens"]) ??
      // DeepSeek, Moonshot and Anthropic-style relays report it in addition to the totals.
      count(json["prompt_cache_hit_tokens"]) ??
      count(json["cached_tokens"]) ??
      count(json["cache_read_input_tokens"]) ??
      0,
    cacheWriteTokens:
      count(details["cache_write_tokens"]) ??
      count(details["cache_creation_tokens"]) ??
      count(json["cache_creation_input_tokens"]) ??
      0,
    audioInputTokens: plain("audio_tokens", cachedAudio),
    ...positive({
      cachedAudioTokens: cachedAudio,
      cachedImageTokens: cachedImage,
      imageInputTokens: plain("image_tokens", cachedImage),
      videoInputTokens: plain("video_tokens", 0),
    }),
  };
}

/** `rest`: what the total leaves for the output; null: no total is reported. */
function outputParts(
  json: JsonRecord,
  output: number,
  rest: number | null,
): Partial<Usage> {
  const details = firstRecord(
    json["completion_tokens_details"],
    json["output_tokens_details"],
  );
  // Perplexity reports both in addition to `completion_tokens`, and excludes them from its total.
  // https://docs.perplexity.ai/docs/sonar/models/sonar-deep-research
  const citation = count(json["citation_tokens"]);
  const separate = citation === null ? null : count(json["reasoning_tokens"]);
  const reasoning = separate ?? count(details["reasoning_tokens"]) ?? 0;
  // xAI leaves reasoning out of `completion_tokens`, and has it in its total.
  // https://docs.x.ai/docs/key-information/consumption-and-rate-limits
  const leftOut = rest === output + reasoning ? reasoning : 0;
  return {
    outputTokens: output + (citation ?? 0) + (separate ?? leftOut),
    audioOutputTokens: count(details["audio_tokens"]) ?? 0,
    reasoningTokens: reasoning,
    ...positive({
      imageOutputTokens: count(details["image_tokens"]) ?? 0,
      videoOutputTokens: count(details["video_tokens"]) ?? 0,
      citationTokens: citation ?? 0,
    }),
  };
}

/** Items billed by the piece in a usage object: searches, seconds of audio, pages, messages. */
function piecesOf(json: JsonRecord): Partial<Record<Piece, number>> {
  return positive({
    webSearches:
      count(firstRecord(json["server_tool_use"])["web_search_requests"]) ??
      count(json["num_search_queries"]) ??
      0,
    audioSeconds:
      json["type"] === "duration"
        ? seconds(json["seconds"])
        : seconds(json["billable_audio_seconds"]),
    pages: count(json["pages_processed"]) ?? 0,
    textMessages: count(json["input_text_messages"]) ?? 0,
  });
}

function positive<Name extends string>(
  counts: Readonly<Record<Name, number>>,
): Partial<Record<Name, number>> {
  const found: Partial<Record<Name, number>> = {};
  for (const name in counts) {
    if (counts[name] > 0) {
      found[name] = counts[name];
    }
  }
  return found;
}

/** More than any call has: higher counts are wrong, and their sums would overflow the columns. */
export const MAX_TOKENS = 1_000_000_000;

function count(value: unknown): number | null {
  return typeof value === "number" && value >= 0 && value <= MAX_TOKENS
    ? Math.round(value)
    : null;
}

/** Seconds may be fractions. */
function seconds(value: unknown): number {
  return typeof value === "number" && value >= 0 && value <= MAX_TOKENS
    ? value
    : 0;
}

function firstRecord(...values: readonly unknown[]): JsonRecord {
  return values.find(isRecord) ?? {};
}
