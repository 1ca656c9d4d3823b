import type { SseEvent } from "../../core/sse.ts";
import { errorInEvent } from "./answered-error.ts";
import {
  chatAnnotations,
  chatUsageOf,
  finishOf,
} from "./chat-responses-answer.ts";
import { deltaChunk, usageChunk, type ChunkHead } from "./chat-chunks.ts";
import { DONE, endOfChat, errorPiece } from "./chat-stream-end.ts";
import {
  parseRecord,
  recordOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { thinkingBlocksOf } from "./reasoning-origin.ts";
import {
  CUT_SHORT,
  type AnswerFacts,
  type StreamPiece,
  type StreamTranslator,
} from "./wire.ts";

interface ToolCall {
  readonly index: number;
  /** How many characters of the arguments were sent. */
  sent: number;
}

/** The events of a Response as chunks of chat. */
export class ChatOfResponses implements StreamTranslator {
  /** Reads the facts of the same events. */
  readonly #reader: StreamTranslator;
  readonly #deploymentId: string;
  /** By the index of their item in the output. */
  readonly #calls = new Map<unknown, ToolCall>();
  #head: ChunkHead = { id: "", created: 0, model: "" };
  /** Characters of text, and those before the part that is open. */
  #written = 0;
  #partStart = 0;
  #ended = false;

  constructor(reader: StreamTranslator, deploymentId: string) {
    this.#reader = reader;
    this.#deploymentId = deploymentId;
  }

  push(event: SseEvent): readonly StreamPiece[] {
    const read = parseRecord(event.data);
    if (read === null || this.#ended) {
      return [];
    }
    this.#reader.push(event);
    switch (read["type"]) {
      case "response.created": {
        const { id, created_at: created, model } = recordOf(read["response"]);
        this.#head = { id, created, model };
        return [this.#delta({ role: "assistant", content: "" })];
      }
      case "response.content_part.added":
        this.#partStart = this.#written;
        return [];
      case "response.output_text.delta":
        this.#written += textOf(read["delta"]).length;
        return [this.#delta({ content: read["delta"] })];
      case "response.output_text.annotation.added":
        return this.#annotate(recordOf(read["annotation"]));
      case "response.refusal.delta":
        return [this.#delta({ refusal: read["delta"] })];
      case "response.reasoning_summary_text.delta":
        return [this.#delta({ reasoning_content: read["delta"] })];
      case "response.output_item.added":
        return this.#call(read["output_index"], recordOf(read["item"]));
      case "response.output_item.done": {
        const item = recordOf(read["item"]);
        return [
          ...this.#thinking(item),
          ...this.#call(read["output_index"], item),
        ];
      }
      case "response.function_call_arguments.delta":
        return this.#arguments(read["output_index"], textOf(read["delta"]));
      case "response.completed":
      case "response.incomplete":
        return this.#finish(recordOf(read["response"]));
      case "response.failed":
      case "error":
        return this.#fail(event.data);
      default:
        // Ends of parts, whose content was sent, and types added to the API later.
        return [];
    }
  }

  end(): readonly StreamPiece[] {
    if (this.#ended) {
      return [];
    }
    this.#ended = true;
    return endOfChat({ endAnnounced: false });
  }

  facts(): AnswerFacts {
    return this.#reader.facts();
  }

  #annotate(annotation: JsonRecord): readonly StreamPiece[] {
    const annotations = chatAnnotations(annotation, this.#partStart);
    return annotations.length === 0 ? [] : [this.#delta({ annotations })];
  }

  /** Only at the end of an item is its encrypted content complete. */
  #thinking(item: JsonRecord): readonly StreamPiece[] {
    const blocks = thinkingBlocksOf(item, this.#deploymentId);
    return blocks.length === 0
      ? []
      : [this.#delta({ thinking_blocks: blocks })];
  }

  /** Opens a tool call, and at its end sends what no delta had of its arguments. */
  #call(place: unknown, item: JsonRecord): readonly StreamPiece[] {
    if (item["type"] !== "function_call") {
      return [];
    }
    const given = textOf(item["arguments"]);
    const call = this.#calls.get(place);
    if (call !== undefined) {
      return this.#arguments(place, given.slice(call.sent));
    }
    const index = this.#calls.size;
    this.#calls.set(place, { index, sent: given.length });
    return [
      this.#delta({
        tool_calls: [
          {
            index,
            id: item["call_id"],
            type: "function",
            function: { name: item["name"], arguments: given },
          },
        ],
      }),
    ];
  }

  #arguments(place: unknown, delta: string): readonly StreamPiece[] {
    const call = this.#calls.get(place);
    if (call === undefined || delta === "") {
      return [];
    }
    call.sent += delta.length;
    const { index } = call;
    return [
      this.#delta({ tool_calls: [{ index, function: { arguments: delta } }] }),
    ];
  }

  #finish(response: JsonRecord): readonly StreamPiece[] {
    this.#ended = true;
    const usage = chatUsageOf(response["usage"]);
    return [
      this.#delta({}, finishOf(response, this.#calls.size > 0)),
      ...(usage === null ? [] : [usageChunk(this.#head, usage)]),
      DONE,
    ];
  }

  #fail(data: string): readonly StreamPiece[] {
    this.#ended = true;
    const { status, text } = errorInEvent(data) ?? { status: 502, text: "" };
    const { message } = recordOf(parseRecord(text)?.["error"]);
    return [errorPiece(textOf(message) || CUT_SHORT, status), DONE];
  }

  #delta(delta: JsonRecord, reason: string | null = null): StreamPiece {
    return deltaChunk(this.#head, delta, reason);
  }
}
