import { parseRecord, type JsonRecord } from "../../core/json.ts";
import type { Usage } from "../tokens/reported-usage.ts";
import {
  errorMessageIn,
  errorStatusIn,
  readChatAnswer,
  type ToolCallPart,
} from "./chat-answer.ts";
import {
  callParts,
  contentOf,
  groundingOf,
  textParts,
} from "./contents-answer.ts";
import { contentsError } from "./contents-error.ts";

const DONE = "[DONE]";

/** The events of a chat stream as chunks of Gemini's: texts as they arrive, calls whole at the end. */
export class ContentsStream {
  #head = { id: "", model: "" };
  #finishReason: string | null = null;
  #usage: Usage | null = null;
  #thinkingBlocks: readonly JsonRecord[] = [];
  #text = "";
  #annotations: readonly JsonRecord[] = [];
  readonly #calls = new Map<number, ToolCallPart>();
  #ended = false;

  push(data: string): readonly JsonRecord[] {
    if (this.#ended) {
      return [];
    }
    if (data === DONE) {
      return this.#finish();
    }
    const answer = readChatAnswer(data);
    if (answer === null) {
      return "error" in (parseRecord(data) ?? {}) ? this.#fail(data) : [];
    }
    const { id, model, finishReason, usage, thinkingBlocks } = answer;
    this.#head = { id: id || this.#head.id, model: model || this.#head.model };
    this.#finishReason = finishReason ?? this.#finishReason;
    this.#usage = usage ?? this.#usage;
    this.#thinkingBlocks = [...this.#thinkingBlocks, ...thinkingBlocks];
    this.#text += answer.text;
    this.#annotations = [...this.#annotations, ...answer.annotations];
    answer.toolCalls.forEach((part) => this.#take(part));
    const parts = textParts(answer);
    return parts.length === 0 ? [] : [contentOf(this.#head, parts, null, null)];
  }

  #take(part: ToolCallPart): void {
    const known = this.#calls.get(part.index);
    this.#calls.set(part.index, {
      index: part.index,
      id: known?.id || part.id,
      name: known?.name || part.name,
      arguments: (known?.arguments ?? "") + part.arguments,
    });
  }

  #finish(): readonly JsonRecord[] {
    this.#ended = true;
    const parts = callParts([...this.#calls.values()], this.#thinkingBlocks);
    const reason = this.#finishReason ?? "stop";
    const sources = groundingOf(this.#text, this.#annotations);
    return [contentOf(this.#head, parts, reason, this.#usage, sources)];
  }

  #fail(data: string): readonly JsonRecord[] {
    this.#ended = true;
    return [contentsError(errorStatusIn(data), errorMessageIn(data))];
  }
}
