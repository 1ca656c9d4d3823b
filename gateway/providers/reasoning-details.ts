import {
  parseRecord,
  present,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";

/** Marks a detail of OpenRouter's reasoning as what a thinking block contains. */
const MARK = "hearth-openrouter:";

/**
 * Reasoning that the provider behind OpenRouter has signed or encrypted, as thinking blocks: some models reject a history of tool calls
 * without it, and clients of other APIs than chat send thinking blocks back, and nothing else. Its text is sent as text.
 * https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks
 */
export function detailBlocks(details: unknown): readonly JsonRecord[] {
  return recordsOf(details)
    .filter(
      ({ signature, data }) => textOf(signature) !== "" || textOf(data) !== "",
    )
    .map(({ text: _text, ...rest }) => ({
      type: "redacted_thinking",
      data: MARK + JSON.stringify(rest),
    }));
}

/** A message of a chat for OpenRouter: with the details that its thinking blocks carry instead of their text alone. */
export function withDetails(message: JsonRecord): JsonRecord {
  const { reasoning_content: reasoning, ...rest } = message;
  const details = detailsIn(message["thinking_blocks"], textOf(reasoning));
  return details.length === 0
    ? message
    : { ...rest, reasoning_details: details };
}

/** A signature is of the text before it. */
function detailsIn(blocks: unknown, reasoning: string): readonly JsonRecord[] {
  let text = reasoning;
  return recordsOf(blocks).flatMap(({ thinking, data }) => {
    text = textOf(thinking) || text;
    const detail = textOf(data).startsWith(MARK)
      ? parseRecord(textOf(data).slice(MARK.length))
      : null;
    return detail === null
      ? []
      : [present({ ...detail, text: "signature" in detail ? text : null })];
  });
}
