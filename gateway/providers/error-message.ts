import { isRecord, parseJson } from "../../core/json.ts";

const MAX_CHARACTERS = 500;

/** The message in a provider's error body, else the start of the body, else the status. */
export function errorMessageOf(status: number, text: string): string {
  const parsed = parseJson(text);
  // Gemini's OpenAI-compatible endpoint wraps its errors in a list.
  const reported: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  if (isRecord(reported)) {
    const { error } = reported;
    const inner = isRecord(error)
      ? error["message"]
      : (error ?? reported["message"] ?? reported["detail"]);
    if (typeof inner === "string" && inner.trim() !== "") {
      return inner;
    }
  }
  const beginning = text.trim().slice(0, MAX_CHARACTERS);
  return beginning === ""
    ? `The provider answered ${status} without a message.`
    : beginning;
}
