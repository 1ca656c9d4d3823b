import {
  present,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { imageOf } from "./chat-image.ts";
import { reasoningIn } from "./reasoning-origin.ts";

/**
 * A message of a chat as items of a Responses input. `phases`: what the model said is labelled. A chat does not carry the labels,
 * but they follow from it: what comes with calls is a comment.
 */
export function chatInput(
  message: unknown,
  phases: boolean,
): readonly JsonRecord[] {
  const { role, content, tool_call_id: callId, ...rest } = recordOf(message);
  switch (role) {
    case "assistant": {
      const calls = recordsOf(rest["tool_calls"]).map(callItem);
      const phase = calls.length === 0 ? "final_answer" : "commentary";
      return withReasoning(rest["thinking_blocks"], [
        ...saidItems(content, rest["refusal"], phases ? { phase } : {}),
        ...calls,
      ]);
    }
    case "tool":
      return [
        {
          type: "function_call_output",
          call_id: callId,
          output: inputContent(content),
        },
      ];
    default:
      return [{ type: "message", role, content: inputContent(content) }];
  }
}

/** Reasoning is rejected without the item that followed it. */
function withReasoning(
  blocks: unknown,
  items: readonly JsonRecord[],
): readonly JsonRecord[] {
  return items.length === 0
    ? []
    : [
        ...recordsOf(blocks)
          .map(reasoningIn)
          .filter((item) => item !== null),
        ...items,
      ];
}

function saidItems(
  content: unknown,
  refusal: unknown,
  label: JsonRecord,
): readonly JsonRecord[] {
  const texts =
    typeof content === "string"
      ? [{ type: "text", text: content }]
      : recordsOf(content);
  const parts = [...texts, { type: "refusal", refusal }].flatMap(saidPart);
  return parts.length === 0
    ? []
    : [{ type: "message", role: "assistant", content: parts, ...label }];
}

function saidPart({ type, text, refusal }: JsonRecord): readonly JsonRecord[] {
  const said = textOf(type === "refusal" ? refusal : text);
  if (said === "") {
    return [];
  }
  return type === "refusal"
    ? [{ type, refusal: said }]
    : [{ type: "output_text", text: said }];
}

function callItem({ id, function: called }: JsonRecord): JsonRecord {
  const { name, arguments: given } = recordOf(called);
  return { type: "function_call", call_id: id, name, arguments: given };
}

function inputContent(content: unknown): unknown {
  return Array.isArray(content)
    ? recordsOf(content).map(inputPart)
    : (content ?? "");
}

/** A part of unknown form is the provider's to reject. */
function inputPart(part: JsonRecord): JsonRecord {
  switch (part["type"]) {
    case "text":
      return { type: "input_text", text: part["text"] };
    case "refusal":
      return { type: "input_text", text: part["refusal"] };
    case "image_url": {
      const { url, detail } = imageOf(part);
      return { type: "input_image", image_url: url, ...present({ detail }) };
    }
    case "file":
      return { type: "input_file", ...recordOf(part["file"]) };
    default:
      return part;
  }
}
