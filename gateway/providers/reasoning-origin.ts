import { recordsOf, textOf, type JsonRecord } from "../../core/json.ts";

/** Marks encrypted reasoning with the deployment that can read it. */
const MARK = "hearth-of:";
const SEPARATOR = ":";

/** A reasoning item with the deployment that it came from; other items, and those without encrypted content, unchanged. */
export function markedReasoning(
  item: JsonRecord,
  deploymentId: string | null,
): JsonRecord {
  const content = encryptedIn(item);
  if (content === "" || deploymentId === null || isOurs(content)) {
    return item;
  }
  const origin = encodeURIComponent(deploymentId);
  return {
    ...item,
    encrypted_content: `${MARK}${origin}${SEPARATOR}${content}`,
  };
}

/** The item as a deployment may read it: without encrypted content of another one, or of Hearth's own form. */
export function readableReasoning(
  item: JsonRecord,
  deploymentId: string,
): JsonRecord {
  const content = encryptedIn(item);
  if (!isOurs(content)) {
    return item;
  }
  const mark = `${MARK}${encodeURIComponent(deploymentId)}${SEPARATOR}`;
  const { encrypted_content: _unreadable, ...rest } = item;
  return content.startsWith(mark)
    ? { ...item, encrypted_content: content.slice(mark.length) }
    : rest;
}

/** A reasoning item as the thinking block that carries it through a chat; none without encrypted content. */
export function thinkingBlocksOf(
  item: JsonRecord,
  deploymentId: string,
): readonly JsonRecord[] {
  const content = encryptedIn(markedReasoning(item, deploymentId));
  if (content === "") {
    return [];
  }
  const thinking = summaryText(item);
  // Clients do not send thinking back that has no text.
  return thinking === ""
    ? [{ type: "redacted_thinking", data: content }]
    : [{ type: "thinking", thinking, signature: content }];
}

/** The reasoning item that a thinking block carries; null for a block of Anthropic's own. */
export function reasoningIn(block: JsonRecord): JsonRecord | null {
  const { thinking, signature, data } = block;
  const content = textOf(signature) || textOf(data);
  const text = textOf(thinking);
  return isOurs(content)
    ? {
        type: "reasoning",
        summary: text === "" ? [] : [{ type: "summary_text", text }],
        encrypted_content: content,
      }
    : null;
}

export function summaryText({ summary }: JsonRecord): string {
  return recordsOf(summary)
    .map(({ text }) => textOf(text))
    .join("");
}

function encryptedIn({ type, encrypted_content }: JsonRecord): string {
  return type === "reasoning" ? textOf(encrypted_content) : "";
}

/** Others are signed thinking that was translated from chat (dialects/responses-input.ts) and signatures of Gemini. */
function isOurs(content: string): boolean {
  return /^hearth(-[a-z]+)?:/.test(content);
}
