import { errorBody, type CallError } from "../http/errors.ts";
import { DONE } from "../providers/openai-wire.ts";
import type { StreamPiece } from "../providers/wire.ts";

/** How a stream of OpenAI's shape ends when it broke off: the error as an event, then its usual end. */
export function openaiErrorPieces(error: CallError): readonly StreamPiece[] {
  return [
    { kind: "error", event: null, data: JSON.stringify(errorBody(error)) },
    DONE,
  ];
}
