import {
  isRecord,
  parseRecord,
  recordsOf,
  type JsonRecord,
} from "../../core/json.ts";
import { ssePieceText, type StreamPiece } from "../providers/wire.ts";

const HAS_USAGE = /"usage":\s*\{/;

/**
 * Leaves out the usage that Gemini, xAI and Perplexity send with every chunk of a chat, without being asked: it is of the answer up to
 * it, and several clients add up what they receive. With a finish reason it is that of the whole answer.
 */
export class EarlyUsage {
  /** The last chunk with a usage that was left out, if none has followed. */
  #leftOut: JsonRecord | null = null;

  textOf(piece: StreamPiece): string {
    if (!HAS_USAGE.test(piece.data)) {
      return ssePieceText(piece);
    }
    const chunk = parseRecord(piece.data);
    if (chunk === null || !isRecord(chunk["usage"]) || !isEarly(chunk)) {
      this.#leftOut = null;
      return ssePieceText(piece);
    }
    this.#leftOut = chunk;
    const { usage: _usage, ...rest } = chunk;
    return ssePieceText({ ...piece, data: JSON.stringify(rest) });
  }

  /** The usage of a whole stream that had none with or after its finish reason. */
  rest(): string {
    return this.#leftOut === null
      ? ""
      : ssePieceText({
          kind: "usage_only",
          event: null,
          data: JSON.stringify({ ...this.#leftOut, choices: [] }),
        });
  }
}

function isEarly(chunk: JsonRecord): boolean {
  const choices = recordsOf(chunk["choices"]);
  return (
    choices.length > 0 &&
    choices.every(({ finish_reason }) => finish_reason == null)
  );
}
