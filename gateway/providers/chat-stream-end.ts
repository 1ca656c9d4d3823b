import { errorInEvent } from "./answered-error.ts";
import { parseRecord, recordOf } from "../../core/json.ts";
import { CUT_SHORT, type AnswerFacts, type StreamPiece } from "./wire.ts";

/** The end of a stream of OpenAI's shape. */
export const DONE: StreamPiece = { kind: "done", event: null, data: "[DONE]" };

/** An error event with what follows it. Clients read `error` alone: an error elsewhere in the event gets an event of its own. */
export function failedPieces(
  event: string | null,
  data: string,
): readonly StreamPiece[] {
  if (parseRecord(data)?.["error"] != null) {
    return [{ kind: "error", event, data }, DONE];
  }
  const { status, text } = errorInEvent(data) ?? { status: 502, text: "" };
  const error = recordOf(parseRecord(text)?.["error"]);
  const { message = CUT_SHORT } = error;
  return [
    { kind: "pass", event, data },
    errorPiece(String(message), status),
    DONE,
  ];
}

/** The rest of a stream that the provider closed in order: not every server sends `[DONE]`, but each a finish reason. */
export function endOfChat({
  endAnnounced,
}: Pick<AnswerFacts, "endAnnounced">): readonly StreamPiece[] {
  return endAnnounced === true ? [DONE] : [errorPiece(CUT_SHORT, 502), DONE];
}

export function errorPiece(message: string, status: number): StreamPiece {
  const error = {
    message,
    type: "upstream_error",
    param: null,
    code: String(status),
  };
  return { kind: "error", event: null, data: JSON.stringify({ error }) };
}
