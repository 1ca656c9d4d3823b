/** What a test asks of one answer, as JSON after `[mock]` in the last message. */
export interface PlayedWishes {
  readonly status?: number;
  readonly message?: string;
  /** Fails this often and then answers; without it a `status` fails always. */
  readonly failures?: number;
  readonly retryAfter?: number;
  /** Pieces of the text after which the connection is cut. */
  readonly cutAfter?: number;
  readonly delayMs?: number;
  /** Answers whole though a stream was asked for. */
  readonly neverStream?: boolean;
}

/** A call as every provider format says it. */
export interface Asked {
  readonly lastText: string;
  /** Media types, or `url` for those that were only named. */
  readonly images: readonly string[];
  readonly toolNames: readonly string[];
  /** Contents of tools that answered last. */
  readonly toolResults: readonly string[];
  readonly wantsJson: boolean;
  readonly thinks: boolean;
}

/** An answer that every provider format can say. */
export interface Said {
  readonly thinking: string | null;
  /** As it is streamed. */
  readonly text: readonly string[];
  readonly calls: readonly PlayedToolCall[];
}

export interface PlayedToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON, as it is streamed. */
  readonly argumentPieces: readonly string[];
}

export const PLAYED = {
  text: "Grüezi 🦊 mitenand!",
  json: { city: "Zürich", population: 443_037 },
  thinking: "A greeting is asked for.",
  cities: ["Zürich", "Genève"],
  inputTokens: 20,
  cachedTokens: 8,
  outputTokens: 12,
} as const;

/** The answer of a small model that does as it is told: calls every tool it may for two cities, repeats what tools said, sees images. */
export function play(asked: Asked): Said {
  const said = { thinking: asked.thinks ? PLAYED.thinking : null, calls: [] };
  if (asked.toolResults.length > 0) {
    return { ...said, text: ["Weather: ", asked.toolResults.join(", ")] };
  }
  if (asked.toolNames.length > 0) {
    return {
      ...said,
      text: [],
      calls: PLAYED.cities.map((city, index) => ({
        id: `call_${index + 1}`,
        name: asked.toolNames[0] ?? "",
        argumentPieces: ['{"city":', `"${city}"}`],
      })),
    };
  }
  if (asked.wantsJson) {
    const json = JSON.stringify(PLAYED.json);
    return { ...said, text: [json.slice(0, 9), json.slice(9)] };
  }
  if (asked.images.length > 0) {
    return { ...said, text: ["I see ", asked.images.join(" and ")] };
  }
  return { ...said, text: ["Grüezi ", "🦊", " mitenand!"] };
}

export function wishesIn(text: string): PlayedWishes {
  const at = text.indexOf("[mock]");
  return at < 0
    ? {}
    : (JSON.parse(text.slice(at + "[mock]".length)) as PlayedWishes);
}

/** Asks for an answer by a prompt. */
export function wishing(wishes: PlayedWishes): string {
  return `Hello [mock]${JSON.stringify(wishes)}`;
}
