import { BlockReader } from "./anthropic-blocks.ts";
import { createFactReader } from "./anthropic-facts.ts";
import { finishReason, openaiUsage } from "./anthropic-usage.ts";
import {
  parseRecord,
  recordOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { deltaChunk, usageChunk, type ChunkHead } from "./chat-chunks.ts";
import { DONE, errorPiece } from "./chat-stream-end.ts";
import type { SseEvent } from "../../core/sse.ts";
import {
  CUT_SHORT,
  type AnswerFacts,
  type StreamPiece,
  type StreamTranslator,
} from "./wire.ts";

/** Anthropic's events as OpenAI's chunks. */
export class ChatStream implements StreamTranslator {
  readonly #reader = createFactReader();
  readonly #blocks = new BlockReader();
  #head: ChunkHead;
  #finished = false;
  #ended = false;

  /** `now`: ms since the epoch. */
  constructor(now: number) {
    this.#head = { id: "", created: Math.floor(now / 1_000), model: "" };
  }

  push({ data }: SseEvent): readonly StreamPiece[] {
    const event = parseRecord(data);
    if (event === null || this.#ended) {
      return [];
    }
    this.#reader.read(event);
    switch (event["type"]) {
      case "message_start": {
        const { id, model } = recordOf(event["message"]);
        this.#head = { ...this.#head, id, model };
        return [this.#delta({ role: "assistant", content: "" })];
      }
      case "content_block_start":
        return this.#deltas(this.#blocks.start(event));
      case "content_block_delta":
        return this.#deltas(this.#blocks.delta(event));
      case "content_block_stop":
        return this.#deltas(this.#blocks.stop(event));
      case "message_delta": {
        const delta = recordOf(event["delta"]);
        return delta["stop_reason"] == null
          ? []
          : this.#finish(delta["stop_reason"], delta["stop_details"]);
      }
      case "message_stop":
        this.#ended = true;
        return [
          ...this.#finish("end_turn", null),
          usageChunk(this.#head, openaiUsage(this.#reader.usage())),
          DONE,
        ];
      case "error":
        this.#ended = true;
        return [failurePiece(recordOf(event["error"])), DONE];
      default:
        // `ping`, and types added to the API later.
        return [];
    }
  }

  end(): readonly StreamPiece[] {
    if (this.#ended) {
      return [];
    }
    this.#ended = true;
    return [errorPiece(CUT_SHORT, 500), DONE];
  }

  facts(): AnswerFacts {
    return this.#reader.facts();
  }

  #finish(stopReason: unknown, details: unknown): readonly StreamPiece[] {
    if (this.#finished) {
      return [];
    }
    this.#finished = true;
    const explanation = textOf(recordOf(details)["explanation"]);
    const delta = explanation === "" ? {} : { refusal: explanation };
    return [this.#delta(delta, finishReason(stopReason))];
  }

  #deltas(deltas: readonly JsonRecord[]): readonly StreamPiece[] {
    return deltas.map((delta) => this.#delta(delta));
  }

  #delta(delta: JsonRecord, reason: string | null = null): StreamPiece {
    return deltaChunk(this.#head, delta, reason);
  }
}

/** HTTP statuses of the errors that can end a stream. */
const ERROR_STATUS: ReadonlyMap<string, number> = new Map([
  ["invalid_request_error", 400],
  ["authentication_error", 401],
  ["billing_error", 402],
  ["permission_error", 403],
  ["not_found_error", 404],
  ["request_too_large", 413],
  ["rate_limit_error", 429],
  ["api_error", 500],
  ["timeout_error", 504],
  ["overloaded_error", 529],
]);

function failurePiece(error: JsonRecord): StreamPiece {
  const type = textOf(error["type"]);
  return errorPiece(
    anthropicSentence(type, textOf(error["message"])),
    ERROR_STATUS.get(type) ?? 500,
  );
}

/** A message of one word (`Overloaded`) gets its type added. */
export function anthropicSentence(type: string, message: string): string {
  if (message === "") {
    return `The provider failed${type === "" ? "" : ` (${type})`}.`;
  }
  return type === "" || message.includes(" ")
    ? message
    : `${message} (${type})`;
}

/** Passes Anthropic's events unchanged to a client of Anthropic's shape. */
export function createNativeStream(): StreamTranslator {
  const reader = createFactReader();
  let ended = false;
  return {
    push({ event, data }: SseEvent) {
      const read = parseRecord(data) ?? {};
      reader.read(read);
      const done = read["type"] === "message_stop";
      const failed = read["type"] === "error";
      ended ||= done || failed;
      return [{ kind: done ? "done" : failed ? "error" : "pass", event, data }];
    },
    end() {
      if (ended) {
        return [];
      }
      ended = true;
      const error = { type: "api_error", message: CUT_SHORT };
      return [
        {
          kind: "error",
          event: "error",
          data: JSON.stringify({ type: "error", error }),
        },
      ];
    },
    facts: () => reader.facts(),
  };
}
