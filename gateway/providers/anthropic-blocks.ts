import {
  numberOf,
  parseRecord,
  recordOf,
  textOf,
  type JsonRecord,
} from "./json.ts";

/** Turns the events of content blocks into deltas of one message. */
export function createBlocks() {
  interface Open {
    readonly block: JsonRecord;
    /** Its place among the tool calls; null: no tool call. */
    readonly call: number | null;
    text: string;
    signature: string;
    json: string;
  }
  const open = new Map<number, Open>();
  let calls = 0;
  const indexOf = (said: JsonRecord) => numberOf(said["index"]) ?? 0;
  const toolDelta = (call: number, written: string): JsonRecord => ({
    tool_calls: [{ index: call, function: { arguments: written } }],
  });

  return {
    start(said: JsonRecord): readonly JsonRecord[] {
      const block = recordOf(said["content_block"]);
      const call = block["type"] === "tool_use" ? calls++ : null;
      const opened: Open = {
        block,
        call,
        text: "",
        signature: textOf(block["signature"]),
        json: "",
      };
      open.set(indexOf(said), opened);
      if (call !== null) {
        return [
          {
            tool_calls: [
              {
                index: call,
                id: block["id"],
                type: "function",
                function: { name: block["name"], arguments: "" },
              },
            ],
          },
        ];
      }
      if (block["type"] === "text") {
        return contentDelta(textOf(block["text"]));
      }
      if (block["type"] !== "thinking") {
        return [];
      }
      opened.text = textOf(block["thinking"]);
      return reasoningDelta(opened.text);
    },

    delta(said: JsonRecord): readonly JsonRecord[] {
      const delta = recordOf(said["delta"]);
      const opened = open.get(indexOf(said));
      switch (delta["type"]) {
        case "text_delta":
          return contentDelta(textOf(delta["text"]));
        case "thinking_delta": {
          const text = textOf(delta["thinking"]);
          if (opened !== undefined) {
            opened.text += text;
          }
          return reasoningDelta(text);
        }
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
          return opened.call === null ? [] : [toolDelta(opened.call, written)];
        }
        default:
          return [];
      }
    },

    /** Blocks that a later call must give back whole are told whole, at their end. */
    stop(said: JsonRecord): readonly JsonRecord[] {
      const index = indexOf(said);
      const opened = open.get(index);
      if (opened === undefined) {
        return [];
      }
      open.delete(index);
      const { block, call, text, signature, json } = opened;
      if (call !== null) {
        return json === ""
          ? [toolDelta(call, JSON.stringify(block["input"] ?? {}))]
          : [];
      }
      switch (block["type"]) {
        case "text":
          return [];
        case "thinking":
          return [
            { thinking_blocks: [{ ...block, thinking: text, signature }] },
          ];
        case "redacted_thinking":
          return [{ thinking_blocks: [block] }];
        default: {
          const input = json === "" ? null : parseRecord(json);
          return [
            { provider_blocks: [input === null ? block : { ...block, input }] },
          ];
        }
      }
    },
  };
}

function contentDelta(content: string): readonly JsonRecord[] {
  return content === "" ? [] : [{ content }];
}

function reasoningDelta(text: string): readonly JsonRecord[] {
  return text === "" ? [] : [{ reasoning_content: text }];
}
