import type { CallBody } from "../calls/body.ts";
import {
  isRecord,
  numberOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";

/** More are rare, and some providers have no limit for a call. */
const SEARCHES_EXPECTED = 5;
/** More than any call makes, whatever it says: a sum must stay finite, or the estimate is no number. */
const MAX_SEARCHES = 1_000_000;

/**
 * The searches of one kind that a call may make, as far as it says: each of its tools `max_uses` (Anthropic), all of them
 * `max_tool_calls` (OpenAI), those of a chat by `web_search_options`.
 */
export function askedSearches(
  { body }: { readonly body: CallBody },
  kind: "web_search" | "file_search",
): number {
  const most = numberOf(body["max_tool_calls"]);
  const each = most ?? SEARCHES_EXPECTED;
  const options = body["web_search_options"];
  const sum = recordsOf(body["tools"])
    // `web_search_preview`, `web_search_20250305` and others
    .filter(
      ({ type, googleSearch }) =>
        textOf(type).startsWith(kind) ||
        (kind === "web_search" && googleSearch !== undefined),
    )
    .map((tool) => Math.min(numberOf(tool["max_uses"]) ?? each, MAX_SEARCHES))
    .reduce(
      (sum, searches) => sum + searches,
      kind === "web_search" && isRecord(options) ? searchesOf(options) : 0,
    );
  return Math.max(0, Math.min(sum, most ?? sum));
}

/** The most searches for `web_search_options`, by how much the model is to read. */
export function searchesOf({ search_context_size: size }: JsonRecord): number {
  switch (size) {
    case "low":
      return 1;
    case "high":
      return 2 * SEARCHES_EXPECTED;
    default:
      return SEARCHES_EXPECTED;
  }
}
