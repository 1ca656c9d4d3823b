import {
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";

/** Marks a thought signature of Gemini as what a thinking block contains. */
const MARK = "hearth-google:";

/**
 * The thought signatures of tool calls as thinking blocks: clients of other APIs send these back, and nothing else beside a call.
 * https://ai.google.dev/gemini-api/docs/thought-signatures
 */
export function signatureBlocks(calls: unknown): readonly JsonRecord[] {
  return recordsOf(calls)
    .map(signatureOf)
    .filter((signature) => signature !== "")
    .map((signature) => ({
      type: "redacted_thinking",
      data: `${MARK}${signature}`,
    }));
}

/** The signature that a call has itself. */
export function signatureOf(call: JsonRecord): string {
  const { google } = recordOf(call["extra_content"]);
  return textOf(recordOf(google)["thought_signature"]);
}

/** The signature in thinking blocks; null: none is there. */
export function signatureIn(blocks: unknown): string | null {
  const found = recordsOf(blocks)
    .map(({ data }) => textOf(data))
    .find((data) => data.startsWith(MARK));
  return found?.slice(MARK.length) ?? null;
}
