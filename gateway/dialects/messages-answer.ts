import { toolInput, toolUseId } from "../providers/anthropic-content.ts";
import type { JsonRecord } from "../../core/json.ts";
import { inputOnly, type Usage } from "../tokens/reported-usage.ts";
import type { CallBody } from "../calls/body.ts";
import { namedCalls } from "./messages-tools.ts";
import { idOf, readChatAnswer, type ChatAnswer } from "./chat-answer.ts";

/** A chat answer as Anthropic's message; other bytes pass. */
export function messageAnswer(bytes: Buffer, body: CallBody): Buffer {
  const read = readChatAnswer(bytes.toString("utf8"));
  if (read === null) {
    return bytes;
  }
  const answer = { ...read, toolCalls: namedCalls(read.toolCalls, body) };
  return Buffer.from(
    JSON.stringify({
      ...emptyMessage(answer),
      content: blocksOf(answer),
      stop_reason: stopReason(answer.finishReason, answer.toolCalls.length > 0),
      usage: messageUsage(answer.usage),
    }),
  );
}

export function emptyMessage(head: {
  readonly id: string;
  readonly model: string;
}): JsonRecord {
  return {
    id: idOf("msg", head.id),
    type: "message",
    role: "assistant",
    model: head.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
}

function blocksOf(answer: ChatAnswer): readonly JsonRecord[] {
  const { thinkingBlocks, reasoning } = answer;
  const text = answer.text + answer.refusal;
  return [
    ...(reasoning === "" || thinkingBlocks.some(isThinking)
      ? []
      : [{ type: "thinking", thinking: reasoning, signature: "" }]),
    ...thinkingBlocks,
    ...answer.providerBlocks,
    ...(text === "" ? [] : [{ type: "text", text }]),
    ...answer.toolCalls.map((call) => ({
      type: "tool_use",
      id: callId(call.id, answer.id, call.index),
      name: call.name,
      input: toolInput(call.arguments),
    })),
  ];
}

/** Thinking whose text is that of the reasoning. */
function isThinking({ type }: JsonRecord): boolean {
  return type === "thinking";
}

/** A tool result must refer to the id of its call; not every server gives one. */
export function callId(id: string, answerId: string, index: number): string {
  return id === "" ? `${idOf("toolu", answerId)}_${index}` : toolUseId(id);
}

/** Anthropic's stop reason. */
export function stopReason(
  finishReason: string | null,
  calledTools: boolean,
): string {
  switch (finishReason) {
    case "length":
      return "max_tokens";
    case "content_filter":
      return "refusal";
    default:
      // Some servers send `stop` after tool calls.
      return calledTools ? "tool_use" : "end_turn";
  }
}

/** Anthropic counts cache reads and writes separately from the input. */
export function messageUsage(usage: Usage | null): JsonRecord {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } =
    usage ?? inputOnly(0);
  return {
    input_tokens: Math.max(
      0,
      inputTokens - cachedInputTokens - cacheWriteTokens,
    ),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedInputTokens,
    output_tokens: outputTokens,
  };
}
