import { urlCitations } from "./anthropic-search.ts";
import {
  finishReason,
  openaiUsage,
  usageFromAnthropic,
} from "./anthropic-usage.ts";
import {
  parseRecord,
  present,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import type { AnswerFacts, TranslatedAnswer } from "./wire.ts";

const NO_FACTS: AnswerFacts = { usage: null, responseId: null, text: "" };

/** An answer of Anthropic's shape in OpenAI's; `created` is in seconds. Other bytes pass unchanged. */
export function chatAnswer(bytes: Buffer, created: number): TranslatedAnswer {
  const answer = messageIn(bytes);
  if (answer === null) {
    return { body: bytes, facts: NO_FACTS };
  }
  const { message, text } = chatMessage(recordsOf(answer["content"]));
  const explanation = textOf(recordOf(answer["stop_details"])["explanation"]);
  const completion = {
    id: answer["id"],
    object: "chat.completion",
    created,
    model: answer["model"],
    choices: [
      {
        index: 0,
        message:
          explanation === "" ? message : { ...message, refusal: explanation },
        logprobs: null,
        finish_reason: finishReason(answer["stop_reason"]),
      },
    ],
    usage: openaiUsage(recordOf(answer["usage"])),
  };
  return {
    body: Buffer.from(JSON.stringify(completion)),
    facts: factsOf(answer, text),
  };
}

/** Facts of an answer that passes in Anthropic's shape. */
export function nativeAnswer(bytes: Buffer): TranslatedAnswer {
  const answer = messageIn(bytes);
  return {
    body: bytes,
    facts:
      answer === null
        ? NO_FACTS
        : factsOf(answer, chatMessage(recordsOf(answer["content"])).text),
  };
}

function messageIn(bytes: Buffer): JsonRecord | null {
  const answer = parseRecord(bytes.toString("utf8"));
  return answer !== null && Array.isArray(answer["content"]) ? answer : null;
}

function factsOf(answer: JsonRecord, text: string): AnswerFacts {
  return {
    usage: usageFromAnthropic(answer["usage"]),
    responseId: typeof answer["id"] === "string" ? answer["id"] : null,
    text,
    isFiltered: answer["stop_reason"] === "refusal",
  };
}

/**
 * Blocks as one message. `thinking_blocks` keeps the signatures for the next turn, `provider_blocks` what OpenAI's
 * shape cannot express (server tools and their results); a later call may send both back.
 */
function chatMessage(blocks: readonly JsonRecord[]): {
  readonly message: JsonRecord;
  readonly text: string;
} {
  const annotations: JsonRecord[] = [];
  const reasoning: string[] = [];
  const thinking: JsonRecord[] = [];
  const calls: JsonRecord[] = [];
  const others: JsonRecord[] = [];
  let content = "";
  for (const block of blocks) {
    switch (block["type"]) {
      case "text":
        annotations.push(...urlCitations(block, content.length));
        content += textOf(block["text"]);
        break;
      case "thinking":
        reasoning.push(textOf(block["thinking"]));
        thinking.push(block);
        break;
      case "redacted_thinking":
        thinking.push(block);
        break;
      case "tool_use":
        calls.push(toolCall(block));
        break;
      default:
        others.push(block);
    }
  }
  const message = {
    role: "assistant",
    content: content === "" && calls.length > 0 ? null : content,
    ...present({
      reasoning_content: reasoning.length === 0 ? null : reasoning.join(""),
      thinking_blocks: thinking.length === 0 ? null : thinking,
      provider_blocks: others.length === 0 ? null : others,
      annotations: annotations.length === 0 ? null : annotations,
      tool_calls: calls.length === 0 ? null : calls,
    }),
  };
  const counted = calls.length === 0 ? "" : JSON.stringify(calls);
  return { message, text: reasoning.join("") + content + counted };
}

function toolCall(block: JsonRecord): JsonRecord {
  return {
    id: block["id"],
    type: "function",
    function: {
      name: block["name"],
      arguments: JSON.stringify(block["input"] ?? {}),
    },
  };
}
