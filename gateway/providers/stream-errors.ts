import { SseParser, type SseEvent } from "../../core/sse.ts";
import { errorInEvent } from "./answered-error.ts";
import { isRecord, parseRecord } from "../../core/json.ts";

const FIELD = "error:";

/** Parses a provider's stream; an error outside of its events becomes one. */
export function createStreamParser(): SseParser {
  return new SseParser(errorInLine);
}

/**
 * The error in a line that is no field of an event: llama.cpp wrote `error: {…}` until September 2025
 * (https://github.com/ggml-org/llama.cpp/pull/16109), others put the JSON of a server behind them into the stream
 * (https://github.com/lemonade-sdk/lemonade/issues/2826). null: there is none.
 */
function errorInLine(line: string): SseEvent | null {
  if (!line.startsWith(FIELD)) {
    return errorInEvent(line) === null ? null : { event: null, data: line };
  }
  const written = parseRecord(line.slice(FIELD.length));
  if (written === null) {
    return null;
  }
  const error = isRecord(written["error"]) ? written["error"] : written;
  return { event: null, data: JSON.stringify({ error }) };
}
