import { open, seal, sealingKeys, type SealingKeys } from "../config/sealed.ts";
import { invalidParam } from "../http/errors.ts";
import { isRecord, textOf, type JsonRecord } from "../../core/json.ts";

/** Marks compactions of this gateway; those of a provider pass to it unchanged. */
const OURS = "hearth-summary:";

/** What a model is asked for at the end of a conversation that is compacted. */
export const SUMMARY_REQUEST =
  "Summarise our conversation up to here, so that it can be continued from your summary alone. Keep what was asked and decided, facts, names, numbers and code that are still needed, the results of tools, and what is left to do. Answer with the summary only.";

/** The item that takes the place of a conversation; only its owner's calls can read it. */
export function compactionItem(
  summary: string,
  id: string,
  owner: string,
  keys: SealingKeys,
): JsonRecord {
  return {
    id,
    type: "compaction",
    encrypted_content: OURS + seal(summary, sealingKeys(keys)[0], owner),
  };
}

export function isCompaction(item: unknown): item is JsonRecord {
  return (
    isRecord(item) &&
    item["type"] === "compaction" &&
    textOf(item["encrypted_content"]).startsWith(OURS)
  );
}

/** A compaction as any model reads it. Throws 400 for another owner's. */
export function openedCompaction(
  item: JsonRecord,
  param: string,
  owner: string,
  keys: SealingKeys,
): JsonRecord {
  const sealed = textOf(item["encrypted_content"]).slice(OURS.length);
  const opened = open(sealed, sealingKeys(keys), owner);
  if (opened === null) {
    throw invalidParam(
      param,
      "cannot be read: it was compacted for another user or key. Send the conversation itself.",
    );
  }
  return { type: "message", ...summaryMessage(opened.text.reveal()) };
}

/** What a model reads in place of the conversation that was summarized. */
export function summaryMessage(summary: string): JsonRecord {
  return {
    role: "user",
    content: `Summary of our conversation so far:\n\n${summary}`,
  };
}
