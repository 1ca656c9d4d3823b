import type { CallBody } from "../calls/body.ts";
import { recordOf, type JsonRecord } from "../../core/json.ts";
import type { Usage } from "../tokens/reported-usage.ts";
import { idOf, readChatAnswer, type ChatAnswer } from "./chat-answer.ts";
import { callItem } from "./responses-calls.ts";
import { encryptedContent } from "./responses-input.ts";
import { translatedTools, type TranslatedTools } from "./responses-tools.ts";

/** A chat answer as a Response; other bytes pass. `answerId`: instead of its own id. */
export function responseAnswer(
  bytes: Buffer,
  body: CallBody,
  answerId?: string,
): Buffer {
  const read = readChatAnswer(bytes.toString("utf8"));
  if (read === null) {
    return bytes;
  }
  const answer = { ...read, id: answerId ?? read.id };
  const items = outputOf(answer, translatedTools(body));
  const output = isCutOff(answer.finishReason)
    ? items.map((item, place) =>
        place === items.length - 1 ? cutOffItem(item) : item,
      )
    : items;
  return Buffer.from(
    JSON.stringify(
      endedResponse(body, answer, output, answer.finishReason, answer.usage),
    ),
  );
}

export interface ResponseHead {
  readonly id: string;
  readonly model: string;
  /** Seconds. */
  readonly created: number;
}

/** A Response that repeats the caller's parameters. */
export function emptyResponse(body: CallBody, head: ResponseHead): JsonRecord {
  return {
    id: idOf("resp", head.id),
    object: "response",
    created_at: head.created,
    status: "in_progress",
    background: false,
    error: null,
    incomplete_details: null,
    instructions: body["instructions"] ?? null,
    max_output_tokens: body["max_output_tokens"] ?? null,
    metadata: body["metadata"] ?? {},
    model: head.model === "" ? body.model : head.model,
    output: [],
    parallel_tool_calls: body["parallel_tool_calls"] ?? true,
    previous_response_id: null,
    reasoning: body["reasoning"] ?? { effort: null, summary: null },
    store: false,
    temperature: body["temperature"] ?? null,
    text: body["text"] ?? { format: { type: "text" } },
    tool_choice: body["tool_choice"] ?? "auto",
    tools: body["tools"] ?? [],
    top_p: body["top_p"] ?? null,
    truncation: body["truncation"] ?? "disabled",
    usage: null,
    user: body["user"] ?? null,
  };
}

export function endedResponse(
  body: CallBody,
  head: ResponseHead,
  output: readonly JsonRecord[],
  finishReason: string | null,
  usage: Usage | null,
): JsonRecord {
  const reason = incompleteReason(finishReason);
  return {
    ...emptyResponse(body, head),
    status: reason === null ? "completed" : "incomplete",
    incomplete_details: reason === null ? null : { reason },
    output,
    usage: usage === null ? null : responseUsage(usage),
  };
}

/** Whether the model was stopped while it wrote the last item. */
export function isCutOff(finishReason: string | null): boolean {
  return incompleteReason(finishReason) !== null;
}

/** Clients must not run a tool call whose arguments end in the middle. */
export function cutOffItem(item: JsonRecord): JsonRecord {
  return { ...item, status: "incomplete" };
}

function incompleteReason(finishReason: string | null): string | null {
  switch (finishReason) {
    case "length":
      return "max_output_tokens";
    case "content_filter":
      return "content_filter";
    default:
      return null;
  }
}

function outputOf(
  answer: ChatAnswer,
  tools: TranslatedTools,
): readonly JsonRecord[] {
  const { id, reasoning, thinkingBlocks, text, refusal } = answer;
  const annotations = answer.annotations.map(annotationOf);
  return [
    ...(reasoning === "" && thinkingBlocks.length === 0
      ? []
      : [reasoningItem(id, reasoning, thinkingBlocks)]),
    ...(text === "" && refusal === ""
      ? []
      : [messageItem(id, { text, refusal, annotations }, "completed")]),
    ...answer.toolCalls.map((call) => callItem(id, call, "completed", tools)),
  ];
}

export function reasoningItem(
  answerId: string,
  text: string,
  thinkingBlocks: readonly JsonRecord[],
): JsonRecord {
  return {
    id: idOf("rs", answerId),
    type: "reasoning",
    summary: text === "" ? [] : [{ type: "summary_text", text }],
    ...(thinkingBlocks.length === 0
      ? {}
      : { encrypted_content: encryptedContent(thinkingBlocks) }),
  };
}

interface MessageContent {
  readonly text: string;
  readonly refusal: string;
  readonly annotations: readonly JsonRecord[];
}

export function messageItem(
  answerId: string,
  { text, refusal, annotations }: MessageContent,
  status: "in_progress" | "completed",
): JsonRecord {
  return {
    id: idOf("msg", answerId),
    type: "message",
    role: "assistant",
    status,
    content: [
      ...(text === "" ? [] : [textPart(text, annotations)]),
      ...(refusal === "" ? [] : [{ type: "refusal", refusal }]),
    ],
  };
}

export function textPart(
  text: string,
  annotations: readonly JsonRecord[] = [],
): JsonRecord {
  return { type: "output_text", text, annotations, logprobs: [] };
}

/** A source in chat as one in Responses. */
export function annotationOf({
  url_citation: citation,
  ...annotation
}: JsonRecord): JsonRecord {
  return { ...annotation, ...recordOf(citation) };
}

function responseUsage(usage: Usage): JsonRecord {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: {
      cached_tokens: usage.cachedInputTokens,
      cache_write_tokens: usage.cacheWriteTokens,
    },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
}
