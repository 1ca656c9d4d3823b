import { isRecord, textOf, type JsonRecord } from "../../core/json.ts";

/**
 * Messages of Anthropic's shape without thinking that has no signature: that of another provider's model, earlier in the conversation.
 * Anthropic rejects it. The same list if there is none.
 */
export function signedMessages(messages: unknown): unknown {
  return Array.isArray(messages) && messages.some(hasUnsigned)
    ? messages.flatMap((message: unknown) => {
        if (!hasUnsigned(message)) {
          return [message];
        }
        const content = message.content.filter((block) => !isUnsigned(block));
        return content.length === 0 ? [] : [{ ...message, content }];
      })
    : messages;
}

function hasUnsigned(
  message: unknown,
): message is JsonRecord & { readonly content: readonly unknown[] } {
  return (
    isRecord(message) &&
    Array.isArray(message["content"]) &&
    message["content"].some(isUnsigned)
  );
}

/** Thinking that a chat's model answered with gets an empty signature (dialects/messages-answer.ts). */
function isUnsigned(block: unknown): boolean {
  return (
    isRecord(block) &&
    block["type"] === "thinking" &&
    textOf(block["signature"]) === ""
  );
}
