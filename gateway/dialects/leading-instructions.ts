import { listOf, type JsonRecord } from "../../core/json.ts";

/**
 * Messages whose instructions are one message at the start. The chat templates of many open models (Qwen, Mistral, Gemma) reject
 * instructions at any other place, and agents send them there: Claude Code its environment, Codex its permissions. Later ones become
 * part of the user's turn, where they keep their position and the cached prefix before them.
 */
export function leadingInstructions(
  messages: readonly JsonRecord[],
): readonly JsonRecord[] {
  const found = messages.findIndex(({ role }) => !instructs(role));
  const start = found < 0 ? messages.length : found;
  const leading = messages.slice(0, start);
  const joined: JsonRecord[] =
    leading.length < 2
      ? [...leading]
      : [{ ...leading[0], content: leading.map(textOf).join("\n\n") }];
  for (const message of messages.slice(start)) {
    const last = joined.at(-1);
    if (!instructs(message["role"])) {
      joined.push(message);
    } else if (last?.["role"] === "user") {
      joined[joined.length - 1] = withText(last, textOf(message));
    } else {
      joined.push({ role: "user", content: textOf(message) });
    }
  }
  return joined;
}

function instructs(role: unknown): boolean {
  return role === "system" || role === "developer";
}

/** The content of an instruction, which both translations write as a text. */
function textOf({ content }: JsonRecord): string {
  return String(content);
}

function withText(message: JsonRecord, text: string): JsonRecord {
  const { content } = message;
  return {
    ...message,
    content:
      typeof content === "string"
        ? `${content}\n\n${text}`
        : [...listOf(content), { type: "text", text }],
  };
}
