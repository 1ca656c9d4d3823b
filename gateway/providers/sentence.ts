import { isRecord, parseJson } from "./json.ts";

const MOST_CHARACTERS = 500;

/** The sentence inside a provider's error body, else the body's beginning, else what the status means. */
export function sentenceOf(status: number, text: string): string {
  const parsed = parseJson(text);
  // Gemini's OpenAI-compatible endpoint wraps its errors in a list.
  const said: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  if (isRecord(said)) {
    const { error } = said;
    const inner = isRecord(error)
      ? error["message"]
      : (error ?? said["message"] ?? said["detail"]);
    if (typeof inner === "string" && inner.trim() !== "") {
      return inner;
    }
  }
  const beginning = text.trim().slice(0, MOST_CHARACTERS);
  return beginning === ""
    ? `The provider answered ${status} without a word.`
    : beginning;
}
