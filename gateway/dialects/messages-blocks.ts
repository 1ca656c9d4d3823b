import { parseRecord, textOf, type JsonRecord } from "../../core/json.ts";
import type { ChatAnswer, ToolCallPart } from "./chat-answer.ts";
import { callId } from "./messages-answer.ts";

interface ToolCall {
  id: string;
  name: string;
  /** The arguments received so far. */
  arguments: string;
  /** How many characters of the arguments were sent. */
  sent: number;
  state: "waiting" | "open" | "closed";
}

/** Writes content blocks one after the other; of interleaved tool calls each waits until the one before it is complete. */
export class BlockWriter {
  readonly #answerId: string;
  readonly #calls = new Map<number, ToolCall>();
  /** Content that arrived while a tool call was incomplete. */
  readonly #held: ChatAnswer[] = [];
  #nextIndex = 0;
  #open: "text" | "thinking" | "tool" | null = null;
  /** Thinking that was sent as text and not yet as a whole block. */
  #thought = "";

  /** `answerId` names tool calls to which the provider gave no id. */
  constructor(answerId: string) {
    this.#answerId = answerId;
  }

  get calledTools(): boolean {
    return this.#calls.size > 0;
  }

  write(answer: ChatAnswer): readonly JsonRecord[] {
    const events: JsonRecord[] = [];
    if (hasContent(answer)) {
      this.#held.push(answer);
      if (this.#isCallComplete()) {
        events.push(...this.#flush());
      }
    }
    if (answer.toolCalls.length === 0) {
      return events;
    }
    for (const part of answer.toolCalls) {
      this.#takeCall(part);
    }
    return [...events, ...this.#writeCalls(false)];
  }

  end(): readonly JsonRecord[] {
    return [...this.#writeCalls(true), ...this.#flush(), ...this.#close()];
  }

  #flush(): readonly JsonRecord[] {
    return this.#held
      .splice(0)
      .flatMap((answer) => [...this.#writeContent(answer)]);
  }

  #writeContent(answer: ChatAnswer): readonly JsonRecord[] {
    return [
      ...this.#writeThought(answer.reasoning),
      ...answer.thinkingBlocks.flatMap((block) => [
        ...this.#writeThinkingBlock(block),
      ]),
      ...answer.providerBlocks.flatMap((block) => [...this.#writeWhole(block)]),
      ...this.#writeText("text", answer.text + answer.refusal),
    ];
  }

  #writeText(kind: "text" | "thinking", text: string): readonly JsonRecord[] {
    if (text === "") {
      return [];
    }
    const events: JsonRecord[] = [];
    if (this.#open !== kind) {
      events.push(...this.#close(), this.#start(EMPTY_BLOCKS[kind]));
      this.#open = kind;
    }
    events.push(
      this.#delta(
        kind === "text"
          ? { type: "text_delta", text }
          : { type: "thinking_delta", thinking: text },
      ),
    );
    return events;
  }

  #writeThought(text: string): readonly JsonRecord[] {
    this.#thought = this.#open === "thinking" ? this.#thought + text : text;
    return this.#writeText("thinking", text);
  }

  /** Whole blocks follow what was sent as text: only the signature is left to send. */
  #writeThinkingBlock(block: JsonRecord): readonly JsonRecord[] {
    if (block["type"] !== "thinking") {
      return this.#writeWhole(block);
    }
    const text = textOf(block["thinking"]);
    const events =
      this.#open === "thinking" && this.#thought === text
        ? []
        : [...this.#close(), ...this.#writeThought(text)];
    this.#thought = "";
    const signature = textOf(block["signature"]);
    if (this.#open === null) {
      // Thinking may be left out, its signature not.
      events.push(this.#start(EMPTY_BLOCKS.thinking));
      this.#open = "thinking";
    }
    if (signature !== "") {
      events.push(this.#delta({ type: "signature_delta", signature }));
    }
    return [...events, ...this.#close()];
  }

  #takeCall(part: ToolCallPart): void {
    const call: ToolCall = this.#calls.get(part.index) ?? {
      id: "",
      name: "",
      arguments: "",
      sent: 0,
      state: "waiting",
    };
    this.#calls.set(part.index, call);
    call.id ||= part.id;
    call.name ||= part.name;
    call.arguments += part.arguments;
  }

  /** Whether no tool call is open that may still grow. */
  #isCallComplete(): boolean {
    for (const call of this.#calls.values()) {
      if (call.state === "open") {
        return parseRecord(call.arguments) !== null;
      }
    }
    return true;
  }

  /** Sends what can be sent of the tool calls, in their order; at the end everything. */
  #writeCalls(atEnd: boolean): readonly JsonRecord[] {
    const events: JsonRecord[] = [];
    for (const [index, call] of this.#calls) {
      if (call.state === "closed") {
        continue;
      }
      if (call.state === "waiting") {
        if (!atEnd && (call.name === "" || !this.#isCallComplete())) {
          break;
        }
        events.push(...this.#openCall(index, call));
      }
      const pending = call.arguments.slice(call.sent);
      call.sent = call.arguments.length;
      if (pending !== "") {
        events.push(
          this.#delta({ type: "input_json_delta", partial_json: pending }),
        );
      }
    }
    return events;
  }

  #openCall(index: number, call: ToolCall): readonly JsonRecord[] {
    const events = [
      ...this.#close(),
      this.#start({
        type: "tool_use",
        id: callId(call.id, this.#answerId, index),
        name: call.name,
        input: {},
      }),
    ];
    this.#open = "tool";
    call.state = "open";
    return events;
  }

  #close(): readonly JsonRecord[] {
    if (this.#open === null) {
      return [];
    }
    this.#open = null;
    for (const call of this.#calls.values()) {
      if (call.state === "open") {
        call.state = "closed";
      }
    }
    return [this.#stop()];
  }

  #writeWhole(block: JsonRecord): readonly JsonRecord[] {
    return [...this.#close(), this.#start(block), this.#stop()];
  }

  #start(block: JsonRecord): JsonRecord {
    return {
      type: "content_block_start",
      index: this.#nextIndex++,
      content_block: block,
    };
  }

  #delta(fields: JsonRecord): JsonRecord {
    return {
      type: "content_block_delta",
      index: this.#nextIndex - 1,
      delta: fields,
    };
  }

  #stop(): JsonRecord {
    return { type: "content_block_stop", index: this.#nextIndex - 1 };
  }
}

const EMPTY_BLOCKS = {
  text: { type: "text", text: "" },
  thinking: { type: "thinking", thinking: "", signature: "" },
} satisfies Readonly<Record<string, JsonRecord>>;

function hasContent(answer: ChatAnswer): boolean {
  return (
    answer.text !== "" ||
    answer.refusal !== "" ||
    answer.reasoning !== "" ||
    answer.thinkingBlocks.length > 0 ||
    answer.providerBlocks.length > 0
  );
}
