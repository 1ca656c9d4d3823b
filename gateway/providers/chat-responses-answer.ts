import {
  numberOf,
  present,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { summaryText, thinkingBlocksOf } from "./reasoning-origin.ts";

/** A whole Response of a deployment as an answer of chat. */
export function completionOf(
  response: JsonRecord,
  deploymentId: string,
): JsonRecord {
  const items = recordsOf(response["output"]);
  const said = itemsOf(items, "message").flatMap(({ content }) =>
    recordsOf(content),
  );
  const calls = itemsOf(items, "function_call").map(callOf);
  const content = joined(said, "text");
  const thoughts = itemsOf(items, "reasoning");
  const reasoning = thoughts.map(summaryText).join("");
  const blocks = thoughts.flatMap((item) =>
    thinkingBlocksOf(item, deploymentId),
  );
  const annotations = annotationsOf(said);
  return {
    id: response["id"],
    object: "chat.completion",
    created: response["created_at"],
    model: response["model"],
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: content === "" && calls.length > 0 ? null : content,
          refusal: joined(said, "refusal") || null,
          ...present({
            reasoning_content: reasoning === "" ? null : reasoning,
            thinking_blocks: blocks.length === 0 ? null : blocks,
            tool_calls: calls.length === 0 ? null : calls,
            annotations: annotations.length === 0 ? null : annotations,
          }),
        },
        logprobs: null,
        finish_reason: finishOf(response, calls.length > 0),
      },
    ],
    ...present({
      usage: chatUsageOf(response["usage"]),
      service_tier: response["service_tier"],
    }),
  };
}

export function finishOf(response: JsonRecord, called: boolean): string {
  switch (recordOf(response["incomplete_details"])["reason"]) {
    case "max_output_tokens":
      return "length";
    case "content_filter":
      return "content_filter";
    default:
      return called ? "tool_calls" : "stop";
  }
}

/** null: none is reported. */
export function chatUsageOf(reported: unknown): JsonRecord | null {
  const usage = recordOf(reported);
  const input = numberOf(usage["input_tokens"]);
  const output = numberOf(usage["output_tokens"]);
  return input === null || output === null
    ? null
    : {
        prompt_tokens: input,
        completion_tokens: output,
        total_tokens: input + output,
        prompt_tokens_details: usage["input_tokens_details"] ?? {},
        completion_tokens_details: usage["output_tokens_details"] ?? {},
      };
}

function annotationsOf(parts: readonly JsonRecord[]): readonly JsonRecord[] {
  let start = 0;
  return parts.flatMap(({ text, annotations }) => {
    const before = start;
    start += textOf(text).length;
    return recordsOf(annotations).flatMap((one) =>
      chatAnnotations(one, before),
    );
  });
}

/** A quoted page as chat has it, of a part that begins at `start` in the content; of others, none. */
export function chatAnnotations(
  { type, start_index: from, end_index: to, title, url }: JsonRecord,
  start: number,
): readonly JsonRecord[] {
  return type === "url_citation"
    ? [
        {
          type,
          url_citation: {
            start_index: start + (numberOf(from) ?? 0),
            end_index: start + (numberOf(to) ?? 0),
            title: textOf(title),
            url,
          },
        },
      ]
    : [];
}

function itemsOf(
  items: readonly JsonRecord[],
  wanted: string,
): readonly JsonRecord[] {
  return items.filter(({ type }) => type === wanted);
}

function joined(parts: readonly JsonRecord[], field: string): string {
  return parts.map((part) => textOf(part[field])).join("");
}

function callOf(item: JsonRecord): JsonRecord {
  return {
    id: item["call_id"],
    type: "function",
    function: { name: item["name"], arguments: textOf(item["arguments"]) },
  };
}
