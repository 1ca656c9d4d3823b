import type { CallBody } from "../calls/body.ts";
import type { CallError } from "../http/errors.ts";
import { textOf, type JsonRecord } from "../../core/json.ts";
import { inputOnly, type Usage } from "../tokens/reported-usage.ts";
import type { StreamPiece } from "../providers/wire.ts";
import {
  errorMessageIn,
  errorStatusIn,
  readChatAnswer,
  type ChatAnswer,
} from "./chat-answer.ts";
import type { ClientStream } from "./client-shape.ts";
import { emptyMessage, messageUsage, stopReason } from "./messages-answer.ts";
import { BlockWriter } from "./messages-blocks.ts";
import { messagesError, messagesErrorOf } from "./messages-error.ts";
import { namedCalls } from "./messages-tools.ts";

/** Chat chunks as Anthropic's events: content blocks in sequence, each started, filled and stopped. */
export class MessagesStream implements ClientStream {
  readonly #body: CallBody;
  readonly #inputTokens: number;
  #started = false;
  #ended = false;
  #finishReason: string | null = null;
  #usage: Usage | null = null;
  #blocks = new BlockWriter("");

  /** `inputTokens`: an estimate. Some clients read them from the start only, such as LangChain's for JavaScript. */
  constructor(body: CallBody, inputTokens = 0) {
    this.#body = body;
    this.#inputTokens = inputTokens;
  }

  push(piece: StreamPiece): readonly StreamPiece[] {
    if (this.#ended) {
      return [];
    }
    switch (piece.kind) {
      case "pass":
      case "usage_only": {
        const answer = readChatAnswer(piece.data);
        return answer === null
          ? []
          : this.#take(answer).map((event) => eventPiece("pass", event));
      }
      case "done":
        this.#ended = true;
        return [
          ...this.#finish().map((event) => eventPiece("pass", event)),
          eventPiece("done", { type: "message_stop" }),
        ];
      case "error":
        this.#ended = true;
        return [
          eventPiece(
            "error",
            messagesError(
              errorStatusIn(piece.data),
              errorMessageIn(piece.data),
            ),
          ),
        ];
    }
  }

  fail(error: CallError): readonly StreamPiece[] {
    this.#ended = true;
    return [eventPiece("error", messagesErrorOf(error))];
  }

  #take(answer: ChatAnswer): readonly JsonRecord[] {
    this.#finishReason = answer.finishReason ?? this.#finishReason;
    this.#usage = answer.usage ?? this.#usage;
    const toolCalls = namedCalls(answer.toolCalls, this.#body);
    return [
      ...this.#start(answer),
      ...this.#blocks.write({ ...answer, toolCalls }),
    ];
  }

  #start(head: {
    readonly id: string;
    readonly model: string;
  }): readonly JsonRecord[] {
    if (this.#started) {
      return [];
    }
    this.#started = true;
    this.#blocks = new BlockWriter(head.id);
    const usage = this.#usage ?? inputOnly(this.#inputTokens);
    const message = { ...emptyMessage(head), usage: messageUsage(usage) };
    return [{ type: "message_start", message }, { type: "ping" }];
  }

  #finish(): readonly JsonRecord[] {
    return [
      ...this.#start({ id: "", model: this.#body.model }),
      ...this.#blocks.end(),
      {
        type: "message_delta",
        delta: {
          stop_reason: stopReason(this.#finishReason, this.#blocks.calledTools),
          stop_sequence: null,
        },
        usage: messageUsage(this.#usage),
      },
    ];
  }
}

function eventPiece(kind: StreamPiece["kind"], event: JsonRecord): StreamPiece {
  return { kind, event: textOf(event["type"]), data: JSON.stringify(event) };
}
