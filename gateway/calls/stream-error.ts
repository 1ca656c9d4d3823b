import { errorBody, type CallError } from "../http/errors.ts";
import { DONE } from "../providers/chat-stream-end.ts";
import type { StreamPiece } from "../providers/wire.ts";

/** The end of a broken-off stream of OpenAI's shape: the error as an event, then the usual last event. */
export function openaiErrorPieces(error: CallError): readonly StreamPiece[] {
  return [
    { kind: "error", event: null, data: JSON.stringify(errorBody(error)) },
    DONE,
  ];
}
