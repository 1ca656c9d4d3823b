import type { CallError } from "../http/errors.ts";
import { parseRecord, textOf, type JsonRecord } from "../providers/json.ts";
import type { StreamPiece } from "../providers/wire.ts";
import {
  errorMessageIn,
  errorStatusIn,
  readChatAnswer,
  type ChatAnswer,
  type ChatUsage,
  type ToolCallPart,
} from "./chat-answer.ts";
import type { ClientStream } from "./client-shape.ts";
import {
  callId,
  emptyMessage,
  messageUsage,
  stopReason,
} from "./messages-answer.ts";
import { messagesError, messagesErrorOf } from "./messages-error.ts";

/** Chat chunks as Anthropic's events: one block after the other, each begun, filled and ended. */
export function createMessagesStream(model: string): ClientStream {
  let begun = false;
  let over = false;
  let finishReason: string | null = null;
  let usage: ChatUsage | null = null;
  let blocks = createBlockWriter("");

  function begin(head: {
    readonly id: string;
    readonly model: string;
  }): readonly JsonRecord[] {
    if (begun) {
      return [];
    }
    begun = true;
    blocks = createBlockWriter(head.id);
    const message = { ...emptyMessage(head), usage: messageUsage(null) };
    return [{ type: "message_start", message }, { type: "ping" }];
  }

  function take(answer: ChatAnswer): readonly JsonRecord[] {
    finishReason = answer.finishReason ?? finishReason;
    usage = answer.usage ?? usage;
    return [...begin(answer), ...blocks.write(answer)];
  }

  function finish(): readonly JsonRecord[] {
    return [
      ...begin({ id: "", model }),
      ...blocks.end(),
      {
        type: "message_delta",
        delta: {
          stop_reason: stopReason(finishReason, blocks.calledTools()),
          stop_sequence: null,
        },
        usage: messageUsage(usage),
      },
    ];
  }

  return {
    push(piece) {
      if (over) {
        return [];
      }
      switch (piece.kind) {
        case "pass":
        case "usage_only": {
          const answer = readChatAnswer(piece.data);
          return answer === null
            ? []
            : take(answer).map((event) => eventPiece("pass", event));
        }
        case "done":
          over = true;
          return [
            ...finish().map((event) => eventPiece("pass", event)),
            eventPiece("done", { type: "message_stop" }),
          ];
        case "error":
          over = true;
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
    },
    fail(error: CallError) {
      over = true;
      return [eventPiece("error", messagesErrorOf(error))];
    },
  };
}

function eventPiece(kind: StreamPiece["kind"], event: JsonRecord): StreamPiece {
  return { kind, event: textOf(event["type"]), data: JSON.stringify(event) };
}

interface Tool {
  id: string;
  name: string;
  /** Arguments that came, and how many characters of them were told. */
  written: string;
  told: number;
  state: "waiting" | "open" | "closed";
}

/** Writes blocks in turn; tool calls that come mixed wait until the one before them is whole. */
function createBlockWriter(answerId: string) {
  const tools = new Map<number, Tool>();
  let next = 0;
  let open: "text" | "thinking" | "tool" | null = null;
  /** Thinking told as text already, and not yet as a whole block. */
  let thought = "";
  const held: ChatAnswer[] = [];

  const start = (block: JsonRecord): JsonRecord => ({
    type: "content_block_start",
    index: next++,
    content_block: block,
  });
  const delta = (fields: JsonRecord): JsonRecord => ({
    type: "content_block_delta",
    index: next - 1,
    delta: fields,
  });
  const stop = (): JsonRecord => ({
    type: "content_block_stop",
    index: next - 1,
  });
  const whole = (block: JsonRecord): readonly JsonRecord[] => [
    start(block),
    stop(),
  ];

  function close(): readonly JsonRecord[] {
    if (open === null) {
      return [];
    }
    open = null;
    for (const tool of tools.values()) {
      if (tool.state === "open") {
        tool.state = "closed";
      }
    }
    return [stop()];
  }

  function write(
    kind: "text" | "thinking",
    text: string,
  ): readonly JsonRecord[] {
    if (text === "") {
      return [];
    }
    const begun = open === kind;
    const events = begun ? [] : [...close()];
    if (!begun) {
      events.push(
        start(
          kind === "text"
            ? { type: "text", text: "" }
            : { type: "thinking", thinking: "", signature: "" },
        ),
      );
    }
    open = kind;
    events.push(
      delta(
        kind === "text"
          ? { type: "text_delta", text }
          : { type: "thinking_delta", thinking: text },
      ),
    );
    return events;
  }

  /** Whole blocks come at the end of what was told as text: what is left is the signature. */
  function thinkingBlock(block: JsonRecord): readonly JsonRecord[] {
    if (block["type"] !== "thinking") {
      return [...close(), ...whole(block)];
    }
    const text = textOf(block["thinking"]);
    const events =
      open === "thinking" && thought === text
        ? []
        : [...close(), ...writeThought(text)];
    thought = "";
    const signature = textOf(block["signature"]);
    if (open === null) {
      // Thinking may be left out, its signature not.
      events.push(start({ type: "thinking", thinking: "", signature: "" }));
      open = "thinking";
    }
    if (signature !== "") {
      events.push(delta({ type: "signature_delta", signature }));
    }
    return [...events, ...close()];
  }

  function writeThought(text: string): readonly JsonRecord[] {
    thought = open === "thinking" ? thought + text : text;
    return write("thinking", text);
  }

  function takeCall(part: ToolCallPart): void {
    const tool: Tool = tools.get(part.index) ?? {
      id: "",
      name: "",
      written: "",
      told: 0,
      state: "waiting",
    };
    tools.set(part.index, tool);
    tool.id ||= part.id;
    tool.name ||= part.name;
    tool.written += part.arguments;
  }

  /** Whether no tool call is open that may still grow. */
  function callIsWhole(): boolean {
    const told = [...tools.values()].find(({ state }) => state === "open");
    return told === undefined || isWhole(told);
  }

  /** Tells what can be told of the tool calls, in their order; at the end everything. */
  function tellCalls(atEnd: boolean): readonly JsonRecord[] {
    const events: JsonRecord[] = [];
    for (const [index, tool] of tools) {
      if (tool.state === "closed") {
        continue;
      }
      if (tool.state === "waiting") {
        if (tool.name === "" && !atEnd) {
          break;
        }
        if (!atEnd && !callIsWhole()) {
          break;
        }
        events.push(
          ...close(),
          start({
            type: "tool_use",
            id: callId(tool.id, answerId, index),
            name: tool.name,
            input: {},
          }),
        );
        open = "tool";
        tool.state = "open";
      }
      const untold = tool.written.slice(tool.told);
      tool.told = tool.written.length;
      if (untold !== "") {
        events.push(delta({ type: "input_json_delta", partial_json: untold }));
      }
    }
    return events;
  }

  /** Content that came while a tool call was not whole waits for its end. */
  function flush(): readonly JsonRecord[] {
    return held.splice(0).flatMap((answer) => [...tellContent(answer)]);
  }

  function tellContent(answer: ChatAnswer): readonly JsonRecord[] {
    return [
      ...writeThought(answer.reasoning),
      ...answer.thinkingBlocks.flatMap((block) => [...thinkingBlock(block)]),
      ...answer.providerBlocks.flatMap((block) => [
        ...close(),
        ...whole(block),
      ]),
      ...write("text", answer.text + answer.refusal),
    ];
  }

  return {
    write(answer: ChatAnswer): readonly JsonRecord[] {
      const events: JsonRecord[] = [];
      if (hasContent(answer)) {
        held.push(answer);
        if (callIsWhole()) {
          events.push(...flush());
        }
      }
      if (answer.toolCalls.length === 0) {
        return events;
      }
      answer.toolCalls.forEach(takeCall);
      return [...events, ...tellCalls(false)];
    },
    end: (): readonly JsonRecord[] => [
      ...tellCalls(true),
      ...flush(),
      ...close(),
    ],
    calledTools: () => tools.size > 0,
  };
}

function hasContent(answer: ChatAnswer): boolean {
  return (
    answer.text !== "" ||
    answer.refusal !== "" ||
    answer.reasoning !== "" ||
    answer.thinkingBlocks.length > 0 ||
    answer.providerBlocks.length > 0
  );
}

function isWhole(tool: Tool): boolean {
  return parseRecord(tool.written) !== null;
}
