import { createBlocks } from "./anthropic-blocks.ts";
import { createFactReader } from "./anthropic-facts.ts";
import { finishReason, openaiUsage } from "./anthropic-usage.ts";
import { parseRecord, recordOf, textOf, type JsonRecord } from "./json.ts";
import { DONE } from "./openai-wire.ts";
import type { SseEvent } from "./sse.ts";
import type { StreamPiece, StreamTranslator } from "./wire.ts";

/** Anthropic's events as OpenAI's chunks; `now` gives milliseconds. */
export function createChatStream(now: () => number): StreamTranslator {
  const created = Math.floor(now() / 1_000);
  const reader = createFactReader();
  const blocks = createBlocks();
  let head: JsonRecord = { id: "", model: "" };
  let finished = false;
  let ended = false;

  const chunk = (
    delta: JsonRecord,
    reason: string | null = null,
  ): StreamPiece => ({
    kind: "pass",
    event: null,
    data: JSON.stringify({
      id: head["id"],
      object: "chat.completion.chunk",
      created,
      model: head["model"],
      choices: [{ index: 0, delta, finish_reason: reason }],
    }),
  });

  function finish(stopReason: unknown, details: unknown): StreamPiece[] {
    if (finished) {
      return [];
    }
    finished = true;
    const explanation = textOf(recordOf(details)["explanation"]);
    const delta = explanation === "" ? {} : { refusal: explanation };
    return [chunk(delta, finishReason(stopReason))];
  }

  function usageChunk(): StreamPiece {
    return {
      kind: "usage_only",
      event: null,
      data: JSON.stringify({
        id: head["id"],
        object: "chat.completion.chunk",
        created,
        model: head["model"],
        choices: [],
        usage: openaiUsage(reader.usage()),
      }),
    };
  }

  return {
    push(event) {
      const said = parseRecord(event.data);
      if (said === null || ended) {
        return [];
      }
      reader.read(said);
      switch (said["type"]) {
        case "message_start": {
          const message = recordOf(said["message"]);
          head = { id: message["id"], model: message["model"] };
          return [chunk({ role: "assistant", content: "" })];
        }
        case "content_block_start":
          return blocks.start(said).map((delta) => chunk(delta));
        case "content_block_delta":
          return blocks.delta(said).map((delta) => chunk(delta));
        case "content_block_stop":
          return blocks.stop(said).map((delta) => chunk(delta));
        case "message_delta": {
          const delta = recordOf(said["delta"]);
          return delta["stop_reason"] == null
            ? []
            : finish(delta["stop_reason"], delta["stop_details"]);
        }
        case "message_stop":
          ended = true;
          return [...finish("end_turn", null), usageChunk(), DONE];
        case "error":
          ended = true;
          return [errorPiece(recordOf(said["error"]))];
        default:
          // ping, and events that are still to be invented.
          return [];
      }
    },
    end() {
      if (ended) {
        return [];
      }
      ended = true;
      return [errorPiece({ type: "api_error", message: CUT_SHORT })];
    },
    facts: () => reader.facts(),
  };
}

export const CUT_SHORT = "The provider's stream ended before its answer did.";

/** Statuses of the errors that a stream may end with. */
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

function errorPiece(error: JsonRecord): StreamPiece {
  const type = textOf(error["type"]);
  return {
    kind: "error",
    event: null,
    data: JSON.stringify({
      error: {
        message: anthropicSentence(type, textOf(error["message"])),
        type: "upstream_error",
        param: null,
        code: String(ERROR_STATUS.get(type) ?? 500),
      },
    }),
  };
}

/** Some messages are one word (`Overloaded`); the type says more. */
export function anthropicSentence(type: string, message: string): string {
  if (message === "") {
    return `The provider failed${type === "" ? "" : ` (${type})`}.`;
  }
  return type === "" || message.includes(" ")
    ? message
    : `${message} (${type})`;
}

/** Anthropic's events to a client of Anthropic's shape: they pass as they are. */
export function createNativeStream(): StreamTranslator {
  const reader = createFactReader();
  let ended = false;
  return {
    push({ event, data }: SseEvent) {
      const said = parseRecord(data) ?? {};
      reader.read(said);
      const done = said["type"] === "message_stop";
      const failed = said["type"] === "error";
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
