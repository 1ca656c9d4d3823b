import type { Usage } from "../pricing/prices.ts";
import type { CallBody } from "../calls/body.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { SseEvent } from "./sse.ts";

/** What can be asked of a provider. All but `messages` and `count_tokens` (Anthropic's) have OpenAI's shapes. */
export type Endpoint =
  | "chat"
  | "completions"
  | "embeddings"
  | "responses"
  | "moderations"
  | "images"
  | "messages"
  | "count_tokens";

/** A caller's own headers that reach a provider, by lower-case name: `anthropic-version` and `anthropic-beta`. */
export type ForwardedHeaders = Readonly<Record<string, string>>;

/**
 * One provider format. Pure: nothing here reads or writes anything. Bodies go in and answers come out in the shape of
 * the endpoint that was asked for; an endpoint that the provider has itself passes as bytes, untouched.
 */
export interface ProviderWire {
  /** Whether the provider has this endpoint; what it lacks may be asked through `chat`. */
  speaks(endpoint: Endpoint, deployment: PricedDeployment): boolean;
  /** Appended to the deployment's `apiBase`. */
  path(endpoint: Endpoint, deployment: PricedDeployment): string;
  /** Credentials and what the format asks for; the deployment's own headers go over them. */
  headers(
    deployment: PricedDeployment,
    forwarded: ForwardedHeaders,
  ): Record<string, string>;
  /** Parameters (by path in the body) that cannot be sent: drop them with `request`, or answer 400 naming them. */
  unsupported(
    endpoint: Endpoint,
    body: CallBody,
    deployment: PricedDeployment,
  ): readonly string[];
  /** The body to be sent, without what is ours and what is unsupported. Never throws. */
  request(
    endpoint: Endpoint,
    body: CallBody,
    deployment: PricedDeployment,
    stream: boolean,
  ): Readonly<Record<string, unknown>>;
  /** A 2xx answer in the endpoint's shape. Bytes that are not understood pass as they are. */
  answer(endpoint: Endpoint, bytes: Buffer): TranslatedAnswer;
  stream(endpoint: Endpoint): StreamTranslator;
  /** What a refusal of the provider says, as one sentence. */
  error(status: number, text: string): string;
}

export interface TranslatedAnswer {
  readonly body: Buffer;
  readonly facts: AnswerFacts;
}

/** What is read out of an answer, translated or not. */
export interface AnswerFacts {
  readonly usage: Usage | null;
  readonly responseId: string | null;
  /** The text produced, for counting where the provider reports no usage. */
  readonly text: string;
  /** Where a stream broke off after its input was reported and before its output was: what it said of the input. */
  readonly inputUsage?: Usage;
  /** Service tiers other than the standard one that the answer names; absent: it names none. */
  readonly tiers?: readonly string[];
  /** Of a stream: the end of every choice was announced, so that only the usage is missing. */
  readonly endAnnounced?: boolean;
}

/** Turns a provider's events into the client's, one at a time. */
export interface StreamTranslator {
  push(event: SseEvent): readonly StreamPiece[];
  /** What is left when the provider closed the stream in order: `done`, or `error` where its end is missing. */
  end(): readonly StreamPiece[];
  facts(): AnswerFacts;
}

/** One event to a client. */
export interface StreamPiece {
  /**
   * - `pass`: goes on.
   * - `usage_only`: goes on to those who asked for it (`stream_options.include_usage`).
   * - `done`: the last event; held back until the call is recorded.
   * - `error`: the provider failed after it had begun; goes on, and is the last but for `done`.
   */
  readonly kind: "pass" | "usage_only" | "done" | "error";
  readonly event: string | null;
  readonly data: string;
}

/** The error of a stream that ended in order but lacks its last event. */
export const CUT_SHORT =
  "The provider's stream ended before the answer was complete.";

/** A piece as it is written to the client. */
export function ssePieceText({ event, data }: StreamPiece): string {
  const lines = data.includes("\n") ? data.replaceAll("\n", "\ndata: ") : data;
  return event === null
    ? `data: ${lines}\n\n`
    : `event: ${event}\ndata: ${lines}\n\n`;
}

/** Fields of a body that are ours; they never reach a provider. */
export const OUR_FIELDS: ReadonlySet<string> = new Set([
  "fallbacks",
  "num_retries",
  "timeout",
  "cache",
  "tags",
  "mock_response",
  "mock_testing_fallbacks",
  "mock_timeout",
]);
