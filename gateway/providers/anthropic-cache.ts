import { isRecord, recordOf, type JsonRecord } from "../../core/json.ts";

const MARK = { type: "ephemeral" } as const;
/** Blocks that cannot have a mark. */
const UNMARKED = new Set(["thinking", "redacted_thinking"]);

/**
 * A body of the Messages API with marks up to which Anthropic remembers the prompt (`cache_control`): the instructions with the
 * tools before them, the end of the conversation, and its end in the previous call. Three of the four marks that are allowed; a
 * body with marks of its own stays as it is.
 */
export function withCacheMarks(body: JsonRecord): JsonRecord {
  const messages = listOf(body["messages"]);
  const system = listOf(body["system"]);
  const tools = listOf(body["tools"]);
  const contents = messages.map((message) => recordOf(message)["content"]);
  const written = [body, ...system, ...tools, ...contents.flatMap(listOf)];
  if (written.some((part) => recordOf(part)["cache_control"] != null)) {
    return body;
  }
  const users = [...messages.keys()].filter(
    (at) => recordOf(messages[at])["role"] === "user",
  );
  const ends = new Set(users.slice(-2));
  return {
    ...body,
    ...(system.length > 0
      ? { system: markLast(system) }
      : tools.length > 0
        ? { tools: markLast(tools) }
        : {}),
    messages: messages.map((message, at) => {
      const blocks = listOf(contents[at]);
      return ends.has(at) && blocks.length > 0
        ? { ...recordOf(message), content: markLast(blocks) }
        : message;
    }),
  };
}

/** Blocks; a text is one. */
function listOf(content: unknown): readonly unknown[] {
  if (typeof content === "string") {
    return content === "" ? [] : [{ type: "text", text: content }];
  }
  return Array.isArray(content) ? content : [];
}

function markLast(blocks: readonly unknown[]): readonly unknown[] {
  const last = blocks.findLastIndex(
    (block) => isRecord(block) && !UNMARKED.has(String(block["type"])),
  );
  return blocks.map((block, at) =>
    at === last ? { ...recordOf(block), cache_control: MARK } : block,
  );
}
