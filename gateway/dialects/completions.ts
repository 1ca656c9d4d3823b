import type { CallBody } from "../calls/body.ts";
import { openaiErrorPieces } from "../calls/stream-error.ts";
import { errorBody, invalidParam } from "../http/errors.ts";
import {
  listOf,
  numberOf,
  parseRecord,
  present,
  recordsOf,
  type JsonRecord,
} from "../../core/json.ts";
import { idOf, readChatAnswer, readChoice } from "./chat-answer.ts";
import type { ChatBody, ClientShape, ClientStream } from "./client-shape.ts";

/** `/v1/completions`, OpenAI's oldest shape, for providers that have only chat: the prompt becomes a user message. */
export const completionsShape: ClientShape = {
  endpoint: "completions",
  chatBody: chatBodyOf,
  answer: completionAnswer,
  stream: createCompletionsStream,
  errorBody,
};

/** Parameters that chat does not have. */
const COMPLETIONS_ONLY = new Set(["prompt", "suffix", "echo", "best_of"]);

function chatBodyOf(body: CallBody): ChatBody {
  const lacks: string[] = [];
  for (const name of ["suffix", "echo"]) {
    if (body[name] != null && body[name] !== "" && body[name] !== false) {
      lacks.push(name);
    }
  }
  if (body["best_of"] != null && body["best_of"] !== 1) {
    lacks.push("best_of");
  }
  const { logprobs } = body;
  if (logprobs != null) {
    lacks.push("logprobs");
  }
  const chat = Object.fromEntries(
    Object.entries(body).filter(
      ([name]) => !COMPLETIONS_ONLY.has(name) && name !== "logprobs",
    ),
  );
  return {
    body: {
      ...present(chat),
      model: body.model,
      messages: [{ role: "user", content: promptOf(body["prompt"]) }],
    },
    lacks,
  };
}

function promptOf(prompt: unknown): string {
  if (typeof prompt === "string") {
    return prompt;
  }
  const [only] = listOf(prompt);
  if (listOf(prompt).length === 1 && typeof only === "string") {
    return only;
  }
  throw invalidParam(
    "prompt",
    "must be one string: the provider of this model supports neither several prompts nor token numbers.",
  );
}

function completionAnswer(bytes: Buffer): Buffer {
  const completion = completionIn(bytes.toString("utf8"));
  return completion === null
    ? bytes
    : Buffer.from(
        JSON.stringify({ ...completion, usage: completion["usage"] ?? null }),
      );
}

/** A chat answer, or a chunk of one, as a completion; null for text that is neither. */
function completionIn(text: string): JsonRecord | null {
  const answer = readChatAnswer(text);
  if (answer === null) {
    return null;
  }
  const { choices, usage } = parseRecord(text) ?? {};
  return {
    id: idOf("cmpl", answer.id),
    object: "text_completion",
    created: answer.created,
    model: answer.model,
    choices: recordsOf(choices).map(choiceOf),
    ...(usage == null ? {} : { usage }),
  };
}

function choiceOf(choice: JsonRecord, position: number): JsonRecord {
  const { text, refusal, finishReason } = readChoice(choice);
  return {
    index: numberOf(choice["index"]) ?? position,
    text: text + refusal,
    logprobs: null,
    finish_reason: finishReason,
  };
}

function createCompletionsStream(): ClientStream {
  return {
    push(piece) {
      const completion =
        piece.kind === "error" ? null : completionIn(piece.data);
      return completion === null
        ? [piece]
        : [{ ...piece, data: JSON.stringify(completion) }];
    },
    fail: openaiErrorPieces,
  };
}
