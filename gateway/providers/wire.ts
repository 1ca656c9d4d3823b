import type { Usage } from "../tokens/reported-usage.ts";
import type { CallBody } from "../calls/body.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { StreamedAudio } from "../tokens/spoken-audio.ts";
import type { SseEvent } from "../../core/sse.ts";

/** The endpoints of providers. All but `messages` and `count_tokens` (Anthropic's) and `rerank` (Cohere's) have OpenAI's shapes. */
export type Endpoint =
  | "chat"
  | "completions"
  | "embeddings"
  | "responses"
  | "moderations"
  | "images"
  | "image_edits"
  | "image_variations"
  | "rerank"
  | "speech"
  | "transcriptions"
  | "translations"
  | "messages"
  | "count_tokens";

/** A caller's own headers that reach a provider, by lower-case name: `anthropic-version` and `anthropic-beta`. */
export type ForwardedHeaders = Readonly<Record<string, string>>;

/**
 * One provider format. Pure: it performs no input or output. Bodies go in and answers come out in the shape of
 * the requested endpoint; an endpoint that the provider has itself passes as unchanged bytes.
 */
export interface ProviderWire {
  /** Whether the provider has this endpoint; others may be translated to `chat`. */
  speaks(endpoint: Endpoint, deployment: PricedDeployment): boolean;
  /** Appended to the deployment's `apiBase`, unless it is a whole address. */
  path(endpoint: Endpoint, deployment: PricedDeployment): string;
  /** Credentials and the headers of the format and of what a chat uses; the deployment's own headers override them. */
  headers(
    deployment: PricedDeployment,
    forwarded: ForwardedHeaders,
    chat?: CallBody,
  ): Record<string, string>;
  /** Unsupported parameters, by path in the body: `request` drops them, or the call is rejected naming them. */
  unsupported(
    endpoint: Endpoint,
    body: CallBody,
    deployment: PricedDeployment,
  ): readonly string[];
  /** The body to send, without unsupported fields. Never throws. */
  request(
    endpoint: Endpoint,
    body: CallBody,
    deployment: PricedDeployment,
    stream: boolean,
  ): Readonly<Record<string, unknown>>;
  /** A successful answer (to `sent`, where the endpoint needs it) in the endpoint's shape. Unknown bytes pass unchanged. */
  answer(endpoint: Endpoint, bytes: Buffer, sent?: CallBody): TranslatedAnswer;
  stream(endpoint: Endpoint): StreamTranslator;
  /** The message of an error answer, as one sentence. */
  error(status: number, text: string): string;
}

export interface TranslatedAnswer {
  readonly body: Buffer;
  readonly facts: AnswerFacts;
}

/** What is read from an answer, translated or not. */
export interface AnswerFacts {
  readonly usage: Usage | null;
  readonly responseId: string | null;
  /** The generated text, for counting when the provider reports no usage. */
  readonly text: string;
  /** How many answers the usage is for (`n`); absent: one. */
  readonly choices?: number;
  /** Of a whole answer: the provider withheld its content, of all choices. */
  readonly isFiltered?: boolean;
  /** Of audio without a report of its usage: its length, where its cost depends on it. */
  readonly spokenSeconds?: number;
  /** Of a stream of speech: its audio so far. */
  readonly spoken?: StreamedAudio;
  /**
   * Of a stream that broke off before it reported any usage: what it contained besides its text, such as images from their first
   * preview on.
   */
  readonly pieces?: Partial<Usage>;
  /** Of a stream that broke off between the reports of input and output: the reported input. */
  readonly inputUsage?: Usage;
  /** Service tiers other than the standard one, if the answer names any. */
  readonly tiers?: readonly string[];
  /** Of a stream: the end of every choice was announced; only the usage is missing. */
  readonly endAnnounced?: boolean;
}

/** Turns a provider's events into the client's, one at a time. */
export interface StreamTranslator {
  push(event: SseEvent): readonly StreamPiece[];
  /** The rest when the provider closed the stream in order: `done`, or `error` if its last event is missing. */
  end(): readonly StreamPiece[];
  /** The error of a stream that broke off, where it continues what came before; without it, the client's shape has it. */
  fail?(message: string): readonly StreamPiece[];
  facts(): AnswerFacts;
}

/** One event to a client. */
export interface StreamPiece {
  /**
   * - `pass`: is passed on.
   * - `usage_only`: is passed on if requested (`stream_options.include_usage`).
   * - `done`: the last event; held back until the call is recorded.
   * - `error`: the provider failed after it had started; is passed on, and only `done` can follow.
   */
  readonly kind: "pass" | "usage_only" | "done" | "error";
  readonly event: string | null;
  readonly data: string;
}

/** The error of a stream that ended in order but lacks its last event. */
export const CUT_SHORT =
  "The provider's stream ended before the answer was complete.";

/** The text of a piece for the client. */
export function ssePieceText({ event, data }: StreamPiece): string {
  const lines = data.includes("\n") ? data.replaceAll("\n", "\ndata: ") : data;
  return event === null
    ? `data: ${lines}\n\n`
    : `event: ${event}\ndata: ${lines}\n\n`;
}

export function sseText(pieces: readonly StreamPiece[]): string {
  return pieces.map(ssePieceText).join("");
}
