import { isRecord, present, type JsonRecord } from "../../../core/json.ts";
import { grouped, readable } from "../../../core/words.ts";
import type { StoredPrompt } from "../../../supervisor/gateway/calls.ts";

/** One text of a prompt or an answer. */
interface PromptText {
  /** Whose it is: `system`, `user`, `assistant`. */
  readonly by: string;
  readonly text: string;
}

/** Longer texts are cut: a page of megabytes cannot be read. */
const MAX_CHARACTERS = 40_000;

/** What templates/call-prompt.eta shows. */
export function viewPrompt({ headers, messages, response }: StoredPrompt) {
  return {
    headers: Object.entries(headers)
      .map(([name, value]) => ({ name, value: readable(value) }))
      .toSorted((one, other) => one.name.localeCompare(other.name)),
    prompt: promptTexts(messages).map(cut),
    answer: answerTexts(response).map(cut),
  };
}

function promptTexts(messages: unknown): readonly PromptText[] {
  if (!Array.isArray(messages)) {
    return messages === null ? [] : [{ by: "prompt", text: textOf(messages) }];
  }
  return messages.map((message: unknown) =>
    isRecord(message)
      ? {
          by: typeof message["role"] === "string" ? message["role"] : "item",
          text: contentOf(message),
        }
      : { by: "item", text: textOf(message) },
  );
}

/** The texts of an answer in any of the formats; what has none is shown as it is. */
function answerTexts(response: unknown): readonly PromptText[] {
  if (response === null || response === undefined) {
    return [];
  }
  if (!isRecord(response)) {
    return [{ by: "assistant", text: textOf(response) }];
  }
  const { choices, content, output } = response;
  if (Array.isArray(choices)) {
    return choices.map((choice: unknown) => {
      const message = isRecord(choice) ? choice["message"] : null;
      return {
        by: "assistant",
        text: isRecord(message) ? contentOf(message) : textOf(choice),
      };
    });
  }
  if (Array.isArray(content) || Array.isArray(output)) {
    return promptTexts(Array.isArray(output) ? output : [response]);
  }
  return [{ by: "answer", text: textOf(response) }];
}

/** The texts of a message; what else it has (tools, images) as JSON. */
function contentOf(message: JsonRecord): string {
  const { content, role: _role, type: _type, id: _id, ...rest } = message;
  const parts = Array.isArray(content) ? content : [content];
  const others = present(rest);
  const hasText = content !== null && content !== undefined;
  return [
    ...(hasText ? parts.map(partText) : []),
    ...(Object.keys(others).length === 0 && hasText ? [] : [textOf(others)]),
  ].join("\n");
}

function partText(part: unknown): string {
  return isRecord(part) && typeof part["text"] === "string"
    ? part["text"]
    : textOf(part);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

function cut({ by, text }: PromptText): PromptText {
  const shown = readable(text);
  return {
    by: readable(by),
    text:
      shown.length <= MAX_CHARACTERS
        ? shown
        : `${shown.slice(0, MAX_CHARACTERS)}\n… (${grouped(shown.length - MAX_CHARACTERS)} more characters)`,
  };
}
