import type { CallBody } from "../calls/body.ts";
import { statusOf, type CallError } from "../http/errors.ts";
import {
  CONTEXT_LENGTH_EXCEEDED,
  isContextWindow,
} from "../providers/failure.ts";
import { textOf, type JsonRecord } from "../../core/json.ts";
import type { Usage } from "../tokens/reported-usage.ts";
import type { StreamPiece } from "../providers/wire.ts";
import {
  errorMessageIn,
  errorStatusIn,
  readChatAnswer,
  type ChatAnswer,
} from "./chat-answer.ts";
import type { ClientStream } from "./client-shape.ts";
import {
  emptyResponse,
  endedResponse,
  isCutOff,
  type ResponseHead,
} from "./responses-answer.ts";
import { ResponseItems } from "./responses-items.ts";
import { translatedTools } from "./responses-tools.ts";

/** Chat chunks as the numbered events of a Response. */
export class ResponsesStream implements ClientStream {
  readonly #body: CallBody;
  readonly #answerId: string | undefined;
  #head: ResponseHead = { id: "", model: "", created: 0 };
  #items: ResponseItems;
  #started = false;
  #ended = false;
  #sequence = 0;
  #finishReason: string | null = null;
  #usage: Usage | null = null;

  constructor(body: CallBody, answerId?: string) {
    this.#body = body;
    this.#answerId = answerId;
    this.#items = this.#itemsOf("");
  }

  push(piece: StreamPiece): readonly StreamPiece[] {
    if (this.#ended) {
      return [];
    }
    switch (piece.kind) {
      case "pass":
      case "usage_only": {
        const answer = readChatAnswer(piece.data);
        return answer === null ? [] : this.#pass(this.#take(answer));
      }
      case "done":
        this.#ended = true;
        return this.#finish();
      case "error":
        this.#ended = true;
        return this.#failed(
          errorStatusIn(piece.data),
          errorMessageIn(piece.data),
        );
    }
  }

  fail(error: CallError): readonly StreamPiece[] {
    this.#ended = true;
    return this.#failed(statusOf(error), error.message);
  }

  #take(answer: ChatAnswer): readonly JsonRecord[] {
    this.#finishReason = answer.finishReason ?? this.#finishReason;
    this.#usage = answer.usage ?? this.#usage;
    return [...this.#start(answer), ...this.#items.write(answer)];
  }

  #itemsOf(id: string): ResponseItems {
    return new ResponseItems(id, translatedTools(this.#body));
  }

  #start(answer: ResponseHead): readonly JsonRecord[] {
    if (this.#started) {
      return [];
    }
    this.#started = true;
    const head = { ...answer, id: this.#answerId ?? answer.id };
    this.#head = head;
    this.#items = this.#itemsOf(head.id);
    const response = emptyResponse(this.#body, head);
    return [
      { type: "response.created", response },
      { type: "response.in_progress", response },
    ];
  }

  #finish(): readonly StreamPiece[] {
    const events = [
      ...this.#start(this.#head),
      ...this.#items.end(isCutOff(this.#finishReason)),
    ];
    const response = endedResponse(
      this.#body,
      this.#head,
      this.#items.output,
      this.#finishReason,
      this.#usage,
    );
    const type = `response.${textOf(response["status"])}`;
    return [...this.#pass(events), this.#piece("done", { type, response })];
  }

  #failed(status: number, message: string): readonly StreamPiece[] {
    const started = this.#pass(this.#start(this.#head));
    const response = {
      ...emptyResponse(this.#body, this.#head),
      status: "failed",
      output: this.#items.output,
      error: {
        code: codeOf(status, message),
        message,
      },
    };
    return [
      ...started,
      this.#piece("error", { type: "response.failed", response }),
    ];
  }

  #pass(events: readonly JsonRecord[]): readonly StreamPiece[] {
    return events.map((event) => this.#piece("pass", event));
  }

  #piece(kind: StreamPiece["kind"], event: JsonRecord): StreamPiece {
    const numbered = { ...event, sequence_number: this.#sequence++ };
    return {
      kind,
      event: textOf(event["type"]),
      data: JSON.stringify(numbered),
    };
  }
}

function codeOf(status: number, message: string): string {
  if (isContextWindow({ status, message })) {
    return CONTEXT_LENGTH_EXCEEDED;
  }
  return status === 429 ? "rate_limit_exceeded" : "server_error";
}
