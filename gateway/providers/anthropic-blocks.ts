import {
  numberOf,
  parseRecord,
  recordOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { urlCitations } from "./anthropic-search.ts";

interface OpenBlock {
  readonly block: JsonRecord;
  /** Its index among the tool calls; null: not a tool call. */
  readonly call: number | null;
  text: string;
  readonly citations: JsonRecord[];
  signature: string;
  json: string;
}

/** Turns the events of content blocks into deltas of one chat message. */
export class BlockReader {
  readonly #open = new Map<number, OpenBlock>();
  #calls = 0;
  /** Characters of the content before the open block. */
  #written = 0;

  start(event: JsonRecord): readonly JsonRecord[] {
    const block = recordOf(event["content_block"]);
    const call = block["type"] === "tool_use" ? this.#calls++ : null;
    const opened: OpenBlock = {
      block,
      call,
      text: textOf(block["text"] ?? block["thinking"]),
      citations: [],
      signature: textOf(block["signature"]),
      json: "",
    };
    this.#open.set(indexOf(event), opened);
    if (call !== null) {
      return [callDelta(call, block)];
    }
    if (block["type"] === "text") {
      return contentDelta(opened.text);
    }
    return block["type"] === "thinking" ? reasoningDelta(opened.text) : [];
  }

  delta(event: JsonRecord): readonly JsonRecord[] {
    const delta = recordOf(event["delta"]);
    const opened = this.#open.get(indexOf(event));
    switch (delta["type"]) {
      case "text_delta":
      case "thinking_delta": {
        const text = textOf(delta["text"] ?? delta["thinking"]);
        if (opened !== undefined) {
          opened.text += text;
        }
        return delta["type"] === "text_delta"
          ? contentDelta(text)
          : reasoningDelta(text);
      }
      case "citations_delta":
        opened?.citations.push(recordOf(delta["citation"]));
        return [];
      case "signature_delta":
        if (opened !== undefined) {
          opened.signature += textOf(delta["signature"]);
        }
        return [];
      case "input_json_delta": {
        const written = textOf(delta["partial_json"]);
        if (opened === undefined || written === "") {
          return [];
        }
        opened.json += written;
        return opened.call === null
          ? []
          : [argumentsDelta(opened.call, written)];
      }
      default:
        return [];
    }
  }

  /** Blocks that a later call must return whole are sent whole, at their end. */
  stop(event: JsonRecord): readonly JsonRecord[] {
    const index = indexOf(event);
    const opened = this.#open.get(index);
    if (opened === undefined) {
      return [];
    }
    this.#open.delete(index);
    const { block, call, json } = opened;
    if (call !== null) {
      return json === ""
        ? [argumentsDelta(call, JSON.stringify(block["input"] ?? {}))]
        : [];
    }
    return block["type"] === "text"
      ? this.#annotationsDelta(opened)
      : wholeBlockDelta(opened);
  }

  #annotationsDelta({ text, citations }: OpenBlock): readonly JsonRecord[] {
    const annotations = urlCitations({ text, citations }, this.#written);
    this.#written += text.length;
    return annotations.length === 0 ? [] : [{ annotations }];
  }
}

function indexOf(event: JsonRecord): number {
  return numberOf(event["index"]) ?? 0;
}

function contentDelta(content: string): readonly JsonRecord[] {
  return content === "" ? [] : [{ content }];
}

function reasoningDelta(text: string): readonly JsonRecord[] {
  return text === "" ? [] : [{ reasoning_content: text }];
}

function callDelta(call: number, block: JsonRecord): JsonRecord {
  return {
    tool_calls: [
      {
        index: call,
        id: block["id"],
        type: "function",
        function: { name: block["name"], arguments: "" },
      },
    ],
  };
}

function argumentsDelta(call: number, written: string): JsonRecord {
  return { tool_calls: [{ index: call, function: { arguments: written } }] };
}

function wholeBlockDelta({
  block,
  text,
  signature,
  json,
}: OpenBlock): readonly JsonRecord[] {
  switch (block["type"]) {
    case "thinking":
      return [{ thinking_blocks: [{ ...block, thinking: text, signature }] }];
    case "redacted_thinking":
      return [{ thinking_blocks: [block] }];
    default: {
      const input = json === "" ? null : parseRecord(json);
      return [
        { provider_blocks: [input === null ? block : { ...block, input }] },
      ];
    }
  }
}
