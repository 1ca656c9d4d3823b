import {
  isRecord,
  listOf,
  parseJson,
  present,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import type { Dialect } from "./dialect.ts";
import { callOf, foundText } from "./responses-calls.ts";

type Lack = (path: string) => void;

/** The items of a Responses input as chat messages. */
export function inputMessages(
  input: unknown,
  dialect: Dialect,
  lack: Lack,
): readonly JsonRecord[] {
  if (typeof input === "string") {
    return [{ role: "user", content: input }];
  }
  const history = new ChatHistory();
  listOf(input).forEach((item, index) => {
    const path = `input[${index}]`;
    if (!isRecord(item)) {
      return lack(path);
    }
    const call = callOf(item);
    if (call !== null) {
      return history.addCall(call);
    }
    const result = resultOf(item, path, dialect, lack);
    if (result !== null) {
      return history.addResult(item["call_id"], result);
    }
    switch (item["type"] ?? "message") {
      case "message":
        return item["role"] === "assistant"
          ? history.addText(textIn(item["content"]))
          : history.addMessage(messageOf(item, path, dialect, lack));
      case "reasoning":
        return history.addReasoning(item);
      default:
        return lack(
          `${path}${typeof item["type"] === "string" ? ` (${item["type"]})` : ""}`,
        );
    }
  });
  return history.end();
}

/** An assistant's turn while its items are collected: thinking, text and calls are separate items. */
interface Turn {
  content: string | null;
  reasoning: string;
  thinkingBlocks: JsonRecord[];
  calls: JsonRecord[];
}

/** Collects messages from items, in their order. */
class ChatHistory {
  readonly #messages: JsonRecord[] = [];
  #turn: Turn | null = null;
  /** What tools returned beside text. It follows their last result: all results of a turn directly follow its calls. */
  #attached: JsonRecord[] = [];

  addMessage(message: JsonRecord): void {
    this.#endTurn();
    this.#endResults();
    this.#messages.push(message);
  }

  addText(text: string): void {
    // Text after the calls of a turn starts another turn.
    if (this.#turn !== null && this.#turn.calls.length > 0) {
      this.#endTurn();
    }
    const turn = this.#assistant();
    turn.content = (turn.content ?? "") + text;
  }

  addCall(call: JsonRecord): void {
    this.#assistant().calls.push(call);
  }

  /** A tool message supports text only: other parts follow in a user message. */
  addResult(callId: unknown, parts: readonly JsonRecord[]): void {
    this.#endTurn();
    const isText = (part: JsonRecord) => part["type"] === "text";
    this.#messages.push({
      role: "tool",
      tool_call_id: textOf(callId),
      content: textIn(parts.filter(isText), "\n"),
    });
    this.#attached.push(...parts.filter((part) => !isText(part)));
  }

  addReasoning(item: JsonRecord): void {
    const turn = this.#turn;
    if (turn !== null && (turn.calls.length > 0 || turn.content !== null)) {
      this.#endTurn();
    }
    addReasoning(this.#assistant(), item);
  }

  end(): readonly JsonRecord[] {
    this.#endTurn();
    this.#endResults();
    return this.#messages;
  }

  #assistant(): Turn {
    this.#turn ??= {
      content: null,
      reasoning: "",
      thinkingBlocks: [],
      calls: [],
    };
    return this.#turn;
  }

  #endTurn(): void {
    if (this.#turn !== null) {
      this.#endResults();
      this.#messages.push(assistantMessage(this.#turn));
    }
    this.#turn = null;
  }

  #endResults(): void {
    if (this.#attached.length > 0) {
      this.#messages.push({ role: "user", content: this.#attached });
    }
    this.#attached = [];
  }
}

function assistantMessage(turn: Turn): JsonRecord {
  const { content, reasoning, thinkingBlocks, calls } = turn;
  return {
    role: "assistant",
    content: content ?? (calls.length > 0 ? null : ""),
    ...present({
      reasoning_content: reasoning === "" ? null : reasoning,
      thinking_blocks: thinkingBlocks.length === 0 ? null : thinkingBlocks,
      tool_calls: calls.length === 0 ? null : calls,
    }),
  };
}

/** `between`: what separates parts that do not continue one text. */
function textIn(content: unknown, between = ""): string {
  return typeof content === "string"
    ? content
    : recordsOf(content)
        .map((part) => textOf(part["text"] ?? part["refusal"]))
        .join(between);
}

function messageOf(
  item: JsonRecord,
  path: string,
  dialect: Dialect,
  lack: Lack,
): JsonRecord {
  const instructs = item["role"] === "developer" || item["role"] === "system";
  return {
    role: instructs ? dialect.instructionRole : "user",
    content: instructs
      ? textIn(item["content"], "\n")
      : contentOf(item["content"], `${path}.content`, dialect, lack),
  };
}

function contentOf(
  content: unknown,
  path: string,
  dialect: Dialect,
  lack: Lack,
): unknown {
  if (typeof content === "string") {
    return content;
  }
  const parts = listOf(content).flatMap((part, index) =>
    partOf(part, `${path}[${index}]`, dialect, lack),
  );
  const [only] = parts;
  return parts.length === 1 && only?.["type"] === "text" ? only["text"] : parts;
}

function partOf(
  part: unknown,
  path: string,
  dialect: Dialect,
  lack: Lack,
): readonly JsonRecord[] {
  if (isRecord(part)) {
    const found = knownPart(part, dialect);
    if (found !== null) {
      return [found];
    }
  }
  lack(path);
  return [];
}

function knownPart(
  part: JsonRecord,
  { fileAddresses }: Dialect,
): JsonRecord | null {
  switch (part["type"]) {
    case "input_text":
    case "output_text":
    case "text":
      return { type: "text", text: textOf(part["text"]) };
    case "refusal":
      return { type: "text", text: textOf(part["refusal"]) };
    case "input_image": {
      const { image_url: url, detail } = part;
      return typeof url === "string"
        ? { type: "image_url", image_url: present({ url, detail }) }
        : null;
    }
    case "input_file": {
      const { file_url: url, file_id, filename } = part;
      const file_data = part["file_data"] ?? (fileAddresses ? url : undefined);
      return typeof file_data === "string" || typeof file_id === "string"
        ? { type: "file", file: present({ file_data, file_id, filename }) }
        : null;
    }
    case "input_audio":
      return part;
    default:
      return null;
  }
}

/** What a tool returned; null: the item is no such result. */
function resultOf(
  item: JsonRecord,
  path: string,
  dialect: Dialect,
  lack: Lack,
): readonly JsonRecord[] | null {
  const { type, output, execution } = item;
  switch (type) {
    case "function_call_output":
    case "custom_tool_call_output":
      return typeof output === "string"
        ? [{ type: "text", text: output }]
        : listOf(output).flatMap((part, index) =>
            partOf(part, `${path}.output[${index}]`, dialect, lack),
          );
    case "tool_search_output":
      return execution === "client"
        ? [{ type: "text", text: foundText(item) }]
        : null;
    default:
      return null;
  }
}

/** Marks encrypted content written by Hearth; that of others cannot be read. */
const OURS = "hearth:";

/** Signed thinking of a chat answer, which the client sends back in the next call. */
export function encryptedContent(blocks: readonly JsonRecord[]): string {
  return OURS + Buffer.from(JSON.stringify(blocks)).toString("base64");
}

/** The thinking in such content; none in that of others. */
export function thinkingIn(content: string): readonly JsonRecord[] {
  if (!content.startsWith(OURS)) {
    return [];
  }
  const json = Buffer.from(content.slice(OURS.length), "base64");
  return recordsOf(parseJson(json.toString("utf8")));
}

function addReasoning(turn: Turn, item: JsonRecord): void {
  turn.reasoning += [
    ...recordsOf(item["content"]),
    ...recordsOf(item["summary"]),
  ]
    .map((part) => textOf(part["text"]))
    .join("");
  turn.thinkingBlocks.push(...thinkingIn(textOf(item["encrypted_content"])));
}
