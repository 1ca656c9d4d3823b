import { hash } from "node:crypto";
import { MINUTE_MS } from "../../core/duration.ts";

interface Message {
  readonly role: string;
  readonly content?: unknown;
}

interface EchoAnswer {
  readonly words: readonly string[];
  readonly finishReason: "stop" | "length";
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly delayMs: number;
}

const MAX_DELAY_MS = MINUTE_MS;
const DIMENSIONS = 64;

/**
 * The answer to a chat: "Echo: " and the user's last message, cut at `maxTokens`.
 * `[delay 300ms]` in that message (also `2s`) delays it by that much, spread over a stream's chunks.
 */
export function answerChat(
  messages: readonly Message[],
  maxTokens: number | undefined,
): EchoAnswer {
  const last = messages.findLast((message) => message.role === "user");
  const prompt = textOf(last?.content);
  const all = `Echo: ${prompt}`.match(/\S+\s*/g) ?? [];
  const words: string[] = [];
  let completionTokens = 0;
  for (const word of all) {
    const tokens = countTokens(word);
    if (maxTokens !== undefined && completionTokens + tokens > maxTokens) {
      break;
    }
    completionTokens += tokens;
    words.push(word);
  }
  return {
    words,
    finishReason: words.length < all.length ? "length" : "stop",
    promptTokens: messages.reduce(
      (sum, message) => sum + countTokens(textOf(message.content)) + 3,
      0,
    ),
    completionTokens,
    delayMs: requestedDelay(prompt),
  };
}

/** One token per four characters of a word, rounded up: close to real counts, and deterministic. */
export function countTokens(text: string): number {
  return (text.match(/\S+/g) ?? []).reduce(
    (sum, word) => sum + Math.ceil(word.length / 4),
    0,
  );
}

/** A unit vector that depends only on the text. */
export function embed(text: string): readonly number[] {
  const bytes = [0, 1].flatMap((part) => [
    ...hash("sha256", `${part}:${text}`, "buffer"),
  ]);
  const raw = bytes.slice(0, DIMENSIONS).map((byte) => byte - 127.5);
  const length = Math.hypot(...raw);
  return raw.map((value) => value / length);
}

/** The text of a message: a string, or the text parts of a list. */
function textOf(content: unknown): string {
  if (typeof content === "string") {
    return content;
  }
  if (!Array.isArray(content)) {
    return "";
  }
  return content
    .map((part: unknown) =>
      typeof part === "object" &&
      part !== null &&
      "text" in part &&
      typeof part.text === "string"
        ? part.text
        : "",
    )
    .filter((text) => text !== "")
    .join(" ");
}

function requestedDelay(text: string): number {
  const [, amount, unit] = /\[delay (\d{1,6})(ms|s)\]/.exec(text) ?? [];
  if (amount === undefined) {
    return 0;
  }
  return Math.min(Number(amount) * (unit === "s" ? 1000 : 1), MAX_DELAY_MS);
}
