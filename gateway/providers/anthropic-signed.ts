import { isRecord, textOf, type JsonRecord } from "../../core/json.ts";
import { reasoningIn } from "./reasoning-origin.ts";

/**
 * Messages of Anthropic's shape without thinking that Anthropic has not signed: that of another provider's model, earlier in the
 * conversation. Anthropic rejects it. The same list if there is none.
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

function isUnsigned(block: unknown): boolean {
  return isRecord(block) && isThinking(block) && !isSigned(block);
}

function isThinking({ type }: JsonRecord): boolean {
  return type === "thinking" || type === "redacted_thinking";
}

/** Whether a block is thinking that Anthropic signed. That of a chat's model gets an empty signature (dialects/messages-answer.ts). */
export function isSigned(block: JsonRecord): boolean {
  return (
    isThinking(block) &&
    (block["type"] !== "thinking" || textOf(block["signature"]) !== "") &&
    reasoningIn(block) === null
  );
}
