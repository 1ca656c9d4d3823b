import { parseExactly } from "./exact-json.ts";
import { countValues } from "./json-values.ts";

/** An object of unknown fields, from a client or a provider. */
export type JsonRecord = Readonly<Record<string, unknown>>;

export function isRecord(value: unknown): value is JsonRecord {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !JSON.isRawJSON(value)
  );
}

/** The object in a JSON text; null for anything else, including invalid JSON. */
export function parseRecord(text: string): JsonRecord | null {
  const parsed = parseJson(text);
  return isRecord(parsed) ? parsed : null;
}

/** In characters; a shorter text has too few levels to matter. */
const CHECKED_FROM = 4_096;

/** Twenty alternatives for each of 16,000 tokens are three million. */
const MAX_VALUES = 4_000_000;

/**
 * undefined for text that is not JSON, is nested deeper than any real one or has more values: a provider could stop all other calls
 * with it, or the process.
 */
export function parseJson(
  text: string,
  parse: (text: string) => unknown = parseExactly,
): unknown {
  if (
    text.length > CHECKED_FROM &&
    typeof countValues(Buffer.from(text), MAX_VALUES) === "string"
  ) {
    return undefined;
  }
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

/** The objects of a list, without other values; empty if there is no list. */
export function recordsOf(value: unknown): readonly JsonRecord[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value if it is an object, otherwise an empty one. */
export function recordOf(value: unknown): JsonRecord {
  return isRecord(value) ? value : {};
}

/** The value if it is a string, otherwise an empty one. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** The fields that have a value, without undefined and null. */
export function present(fields: JsonRecord): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value != null),
  );
}
