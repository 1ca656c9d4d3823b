import type { CallBody } from "../calls/body.ts";
import { statusOf } from "../http/errors.ts";
import { textOf, type JsonRecord } from "../providers/json.ts";
import type { StreamPiece } from "../providers/wire.ts";
import {
  errorMessageIn,
  errorStatusIn,
  readChatAnswer,
  type ChatAnswer,
  type ChatUsage,
} from "./chat-answer.ts";
import type { ClientStream } from "./client-shape.ts";
import {
  emptyResponse,
  endedResponse,
  type ResponseHead,
} from "./responses-answer.ts";
import { createItems } from "./responses-items.ts";

/** Chat chunks as the events of a Response, numbered. */
export function createResponsesStream(body: CallBody): ClientStream {
  let head: ResponseHead = { id: "", model: "", created: 0 };
  let items = createItems("");
  let begun = false;
  let over = false;
  let sequence = 0;
  let finishReason: string | null = null;
  let usage: ChatUsage | null = null;

  function piece(kind: StreamPiece["kind"], event: JsonRecord): StreamPiece {
    const numbered = { ...event, sequence_number: sequence++ };
    return {
      kind,
      event: textOf(event["type"]),
      data: JSON.stringify(numbered),
    };
  }
  const passing = (events: readonly JsonRecord[]) =>
    events.map((event) => piece("pass", event));

  function begin(first: ResponseHead): readonly JsonRecord[] {
    if (begun) {
      return [];
    }
    begun = true;
    head = first;
    items = createItems(first.id);
    const response = emptyResponse(body, head);
    return [
      { type: "response.created", response },
      { type: "response.in_progress", response },
    ];
  }

  function take(answer: ChatAnswer): readonly JsonRecord[] {
    finishReason = answer.finishReason ?? finishReason;
    usage = answer.usage ?? usage;
    return [...begin(answer), ...items.write(answer)];
  }

  function finish(): readonly StreamPiece[] {
    const events = [...begin(head), ...items.end()];
    const response = endedResponse(
      body,
      head,
      items.output(),
      finishReason,
      usage,
    );
    const type = `response.${textOf(response["status"])}`;
    return [...passing(events), piece("done", { type, response })];
  }

  function failed(status: number, message: string): readonly StreamPiece[] {
    const beginning = passing(begin(head));
    const response = {
      ...emptyResponse(body, head),
      status: "failed",
      output: items.output(),
      error: {
        code: status === 429 ? "rate_limit_exceeded" : "server_error",
        message,
      },
    };
    return [
      ...beginning,
      piece("error", { type: "response.failed", response }),
    ];
  }

  return {
    push(next) {
      if (over) {
        return [];
      }
      switch (next.kind) {
        case "pass":
        case "usage_only": {
          const answer = readChatAnswer(next.data);
          return answer === null ? [] : passing(take(answer));
        }
        case "done":
          over = true;
          return finish();
        case "error":
          over = true;
          return failed(errorStatusIn(next.data), errorMessageIn(next.data));
      }
    },
    fail(error) {
      over = true;
      return failed(statusOf(error), error.message);
    },
  };
}
