import {
  isRecord,
  numberOf,
  parseRecord,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { usageFromOpenAI, type Usage } from "../tokens/reported-usage.ts";
import { signatureBlocks } from "../providers/gemini-signature.ts";
import { detailBlocks } from "../providers/reasoning-details.ts";

/** The content of an answer, or of one chunk of it, in OpenAI's chat shape. Only the first choice is read. */
export interface ChatAnswer extends ChatChoice {
  readonly id: string;
  readonly model: string;
  /** Seconds. */
  readonly created: number;
  readonly usage: Usage | null;
}

interface ChatChoice {
  readonly text: string;
  readonly refusal: string;
  readonly reasoning: string;
  readonly thinkingBlocks: readonly JsonRecord[];
  readonly providerBlocks: readonly JsonRecord[];
  /** Sources of the text. */
  readonly annotations: readonly JsonRecord[];
  readonly toolCalls: readonly ToolCallPart[];
  readonly finishReason: string | null;
}

export interface ToolCallPart {
  readonly index: number;
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** null for text that is not an answer. */
export function readChatAnswer(text: string): ChatAnswer | null {
  const answer = parseRecord(text);
  if (
    answer === null ||
    (!Array.isArray(answer["choices"]) && !isRecord(answer["usage"]))
  ) {
    return null;
  }
  const [choice] = recordsOf(answer["choices"]).filter(
    ({ index }) => index === undefined || index === 0,
  );
  return {
    id: textOf(answer["id"]),
    model: textOf(answer["model"]),
    created: numberOf(answer["created"]) ?? 0,
    ...readChoice(choice ?? {}),
    // Moonshot reports that of a stream in its last choice.
    usage: usageFromOpenAI(answer["usage"] ?? choice?.["usage"]),
  };
}

/** A choice of an answer, or what a chunk adds to it. */
export function readChoice(choice: JsonRecord): ChatChoice {
  const message = recordOf(choice["message"] ?? choice["delta"]);
  return {
    text: contentText(message["content"]),
    refusal: textOf(message["refusal"]),
    // OpenRouter, Ollama and newer vLLM use `reasoning`.
    reasoning:
      textOf(message["reasoning_content"]) || textOf(message["reasoning"]),
    thinkingBlocks: [
      ...recordsOf(message["thinking_blocks"]),
      ...signatureBlocks(message["tool_calls"]),
      ...detailBlocks(message["reasoning_details"]),
    ],
    providerBlocks: recordsOf(message["provider_blocks"]),
    annotations: recordsOf(message["annotations"]),
    toolCalls: recordsOf(message["tool_calls"]).map(toolCallPart),
    finishReason: textOf(choice["finish_reason"]) || null,
  };
}

/** Some servers answer with a list of parts. */
function contentText(content: unknown): string {
  return typeof content === "string"
    ? content
    : recordsOf(content)
        .map((part) => textOf(part["text"]))
        .join("");
}

function toolCallPart(call: JsonRecord, position: number): ToolCallPart {
  const called = recordOf(call["function"]);
  const written = called["arguments"];
  return {
    index: numberOf(call["index"]) ?? position,
    id: textOf(call["id"]),
    name: textOf(called["name"]),
    arguments: isRecord(written) ? JSON.stringify(written) : textOf(written),
  };
}

/** The message of an error event of OpenAI's shape. */
export function errorMessageIn(data: string): string {
  const { error } = parseRecord(data) ?? {};
  const message = textOf(recordOf(error)["message"]) || textOf(error);
  return message === "" ? "The provider failed." : message;
}

/** The status of an error event of OpenAI's shape; 500 if it has none. */
export function errorStatusIn(data: string): number {
  const { code: written } = recordOf(parseRecord(data)?.["error"]);
  // Converting an object to a number may throw.
  const code = typeof written === "object" ? NaN : Number(written);
  return Number.isInteger(code) && code >= 400 && code < 600 ? code : 500;
}

/** The answer's id with this prefix. */
export function idOf(prefix: string, id: string): string {
  const rest = id.replace(/^[a-z]+[-_]/, "");
  return `${prefix}_${rest.replaceAll(/[^a-zA-Z0-9_-]/g, "_") || "0"}`;
}
