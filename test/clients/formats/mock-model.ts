/** How a test wants one answer, as JSON after `[mock]` in the last message. */
export interface MockOptions {
  readonly status?: number;
  readonly message?: string;
  /** Number of failures before it answers; by default a `status` is permanent. */
  readonly failures?: number;
  readonly retryAfter?: number;
  /** Number of stream events after which the connection is cut. */
  readonly cutAfter?: number;
  readonly delayMs?: number;
  /** Answers without a stream although one was requested. */
  readonly neverStream?: boolean;
}

/** A request, independent of the provider's format. */
export interface ModelRequest {
  readonly lastText: string;
  /** Media types, or `url` for images given by URL. */
  readonly images: readonly string[];
  readonly toolNames: readonly string[];
  /** Contents of the latest tool results. */
  readonly toolResults: readonly string[];
  readonly wantsJson: boolean;
  readonly thinks: boolean;
}

/** An answer, independent of the provider's format. */
export interface ModelReply {
  readonly thinking: string | null;
  /** In the pieces in which it is streamed. */
  readonly text: readonly string[];
  readonly calls: readonly MockToolCall[];
  /** By default that of `MOCK`. */
  readonly usage?: MockUsage;
  /** Makes the ids of answers differ. */
  readonly id?: string;
}

/** `inputTokens` includes `cachedTokens`. */
export interface MockUsage {
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
}

interface MockToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON, in the pieces in which it is streamed. */
  readonly argumentPieces: readonly string[];
}

export const MOCK = {
  text: "Grüezi 🦊 mitenand!",
  json: { city: "Zürich", population: 443_037 },
  thinking: "A greeting is requested.",
  cities: ["Zürich", "Genève"],
  inputTokens: 20,
  cachedTokens: 8,
  outputTokens: 12,
} as const;

/** The answer of a deterministic model: calls the first tool for two cities, repeats tool results, names images. */
export function mockReply(request: ModelRequest): ModelReply {
  const reply = { thinking: request.thinks ? MOCK.thinking : null, calls: [] };
  if (request.toolResults.length > 0) {
    return { ...reply, text: ["Weather: ", request.toolResults.join(", ")] };
  }
  if (request.toolNames.length > 0) {
    return {
      ...reply,
      text: [],
      calls: MOCK.cities.map((city, index) => ({
        id: `call_${index + 1}`,
        name: request.toolNames[0] ?? "",
        argumentPieces: ['{"city":', `"${city}"}`],
      })),
    };
  }
  if (request.wantsJson) {
    const json = JSON.stringify(MOCK.json);
    return { ...reply, text: [json.slice(0, 9), json.slice(9)] };
  }
  if (request.images.length > 0) {
    return { ...reply, text: ["I see ", request.images.join(" and ")] };
  }
  return { ...reply, text: ["Grüezi ", "🦊", " mitenand!"] };
}

export function mockOptionsIn(text: string): MockOptions {
  const at = text.indexOf("[mock]");
  return at < 0
    ? {}
    : (JSON.parse(text.slice(at + "[mock]".length)) as MockOptions);
}

/** A prompt that requests an answer with these options. */
export function mockPrompt(options: MockOptions): string {
  return `Hello [mock]${JSON.stringify(options)}`;
}
