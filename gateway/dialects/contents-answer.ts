import { parseArguments } from "../../core/exact-json.ts";
import {
  numberOf,
  parseJson,
  recordOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import type { Usage } from "../tokens/reported-usage.ts";
import {
  readChatAnswer,
  type ChatAnswer,
  type ToolCallPart,
} from "./chat-answer.ts";
import { encryptedContent } from "./responses-input.ts";

/** A whole chat answer in the shape of Gemini's `generateContent`; null for text that is none. */
export function contentsAnswer(text: string): JsonRecord | null {
  const answer = readChatAnswer(text);
  if (answer === null) {
    return null;
  }
  const parts = [
    ...textParts(answer),
    ...callParts(answer.toolCalls, answer.thinkingBlocks),
  ];
  const sources = groundingOf(answer.text, answer.annotations);
  return contentOf(answer, parts, answer.finishReason, answer.usage, sources);
}

/** The pages that an answer quotes, as a search of Google's has them: places are counted in bytes. null: there are none. */
export function groundingOf(
  text: string,
  annotations: readonly JsonRecord[],
): JsonRecord | null {
  const cited = annotations.map((one) => recordOf(one["url_citation"]));
  const pages = [...new Set(cited.map(({ url }) => textOf(url)))];
  if (pages.length === 0) {
    return null;
  }
  const bytesBefore = (at: unknown) =>
    Buffer.byteLength(text.slice(0, numberOf(at) ?? 0));
  return {
    groundingChunks: pages.map((uri) => ({
      web: { uri, title: cited.find(({ url }) => url === uri)?.["title"] },
    })),
    groundingSupports: cited.map(
      ({ url, start_index: from, end_index: to }) => ({
        segment: {
          startIndex: bytesBefore(from),
          endIndex: bytesBefore(to),
          text: text.slice(numberOf(from) ?? 0, numberOf(to) ?? 0),
        },
        groundingChunkIndices: [pages.indexOf(textOf(url))],
      }),
    ),
  };
}

/** The parts of a whole answer or of a chunk, without its calls. */
export function textParts({
  reasoning,
  text,
  refusal,
}: ChatAnswer): readonly JsonRecord[] {
  const said = text + refusal;
  return [
    ...(reasoning === "" ? [] : [{ text: reasoning, thought: true }]),
    ...(said === "" ? [] : [{ text: said }]),
  ];
}

/** Clients send a signature back beside the call that has it: it carries what the model's provider needs back. */
export function callParts(
  calls: readonly ToolCallPart[],
  thinkingBlocks: readonly JsonRecord[],
): readonly JsonRecord[] {
  const signature =
    thinkingBlocks.length === 0
      ? {}
      : {
          thoughtSignature: Buffer.from(
            encryptedContent(thinkingBlocks),
          ).toString("base64"),
        };
  return calls.map(({ id, name, arguments: args }, index) => ({
    functionCall: {
      ...(id === "" ? {} : { id }),
      name,
      args: recordOf(parseJson(args, parseArguments)),
    },
    ...(index === 0 ? signature : {}),
  }));
}

/** An answer, or a chunk of one, with these parts. */
export function contentOf(
  head: { readonly id: string; readonly model: string },
  parts: readonly JsonRecord[],
  finishReason: string | null,
  usage: Usage | null,
  sources: JsonRecord | null = null,
): JsonRecord {
  return {
    candidates: [
      {
        content: { role: "model", parts },
        ...(finishReason === null
          ? {}
          : { finishReason: reasonOf(finishReason) }),
        ...(sources === null ? {} : { groundingMetadata: sources }),
        index: 0,
      },
    ],
    ...(usage === null ? {} : { usageMetadata: usageMetadata(usage) }),
    modelVersion: head.model,
    responseId: head.id,
  };
}

function reasonOf(finishReason: string): string {
  switch (finishReason) {
    case "length":
      return "MAX_TOKENS";
    case "content_filter":
      return "SAFETY";
    default:
      return "STOP";
  }
}

/** Gemini counts thoughts separately from the answer. https://ai.google.dev/api/generate-content#UsageMetadata */
function usageMetadata(usage: Usage): JsonRecord {
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } =
    usage;
  return {
    promptTokenCount: inputTokens,
    cachedContentTokenCount: cachedInputTokens,
    candidatesTokenCount: Math.max(0, outputTokens - reasoningTokens),
    thoughtsTokenCount: reasoningTokens,
    totalTokenCount: inputTokens + outputTokens,
  };
}
