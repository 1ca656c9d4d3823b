import { type Usage, usageFromOpenAI } from "../tokens/reported-usage.ts";
import { createFactReader } from "./anthropic-facts.ts";
import {
  isRecord,
  parseRecord,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";

/** Events of Anthropic's Messages and OpenAI's Responses that contain nothing of the answer. */
const OPENINGS = new Set([
  "ping",
  "message_start",
  "content_block_stop",
  "response.created",
  "response.queued",
  "response.in_progress",
]);
/** Those that may contain something, and the field where it would be. */
const PARTS: ReadonlyMap<string, string> = new Map([
  ["content_block_start", "content_block"],
  ["content_block_delta", "delta"],
  ["message_delta", "delta"],
  ["response.output_item.added", "item"],
  ["response.content_part.added", "part"],
  ["response.reasoning_summary_part.added", "part"],
]);
/** Fields of a part that are there before anything was produced. */
const HEAD_FIELDS = new Set(["type", "id", "role", "status", "phase"]);
/** Parts that name what the model has chosen, and so are content themselves. */
const NAMED = /(_call|_use|_result|_output)$/;

/**
 * Whether an event of a stream has something of the answer, or announces its end: text, thinking, a tool call, a finish
 * reason. Roles, pings, empty parts and `[DONE]` are not content; an event of unknown form is.
 */
export function isContent(data: string): boolean {
  if (data === "[DONE]") {
    return false;
  }
  const event = parseRecord(data);
  if (event === null) {
    return true;
  }
  if (Array.isArray(event["choices"])) {
    return recordsOf(event["choices"]).some(hasProduced);
  }
  const type = textOf(event["type"]);
  const part = PARTS.get(type);
  if (part !== undefined) {
    return hasContent(recordOf(event[part]));
  }
  return type.startsWith("response.") && type.endsWith(".delta")
    ? isFilled(event["delta"])
    : !OPENINGS.has(type);
}

/** A choice of a chunk, of chat or of completions. */
function hasProduced({ delta, text, finish_reason }: JsonRecord): boolean {
  return (
    isFilled(finish_reason) || isFilled(text) || hasContent(recordOf(delta))
  );
}

function hasContent(part: JsonRecord): boolean {
  return (
    NAMED.test(textOf(part["type"])) ||
    Object.entries(part).some(
      ([name, value]) => !HEAD_FIELDS.has(name) && isFilled(value),
    )
  );
}

function isFilled(value: unknown): boolean {
  return Array.isArray(value) || isRecord(value)
    ? Object.keys(value).length > 0
    : value != null && value !== "";
}

/** The usage that the events before the first content report; null: none. */
export function openingUsage(openings: readonly string[]): Usage | null {
  const reader = createFactReader();
  let reported: Usage | null = null;
  for (const data of openings) {
    const event = parseRecord(data) ?? {};
    reader.read(event);
    reported = Array.isArray(event["choices"])
      ? (usageFromOpenAI(event["usage"]) ?? reported)
      : reported;
  }
  return reported ?? reader.facts().inputUsage ?? null;
}
