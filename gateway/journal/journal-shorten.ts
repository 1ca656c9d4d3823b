import { isRecord } from "../../core/json.ts";

/** What replaces the cut part of a text. */
const CUT_MARK = "…";
/** Texts inside a free-text object are first cut to this many characters; then the object is emptied. */
const NESTED_TEXT_CHARACTERS = 100;

/** A record's JSON, and the record as the JSON has it. */
export interface Written<T> {
  readonly json: string;
  readonly record: T;
}

/**
 * The record as JSON in at most `maxBytes` bytes, its free-text fields shortened where needed, in the order given;
 * null when even that does not fit. Every other field (money, tokens, ids) stays as it is.
 *
 * A text is cut at its end. In an object or an array the texts are cut to 100 characters; when that does not
 * suffice, it becomes `{}` or `[]`.
 */
export function jsonWithin<T extends object>(
  record: T,
  freeText: readonly string[],
  maxBytes: number,
): Written<T> | null {
  let json = JSON.stringify(record);
  // A UTF-16 unit takes at most three bytes: the usual record is done here without counting them.
  if (json.length * 3 <= maxBytes) {
    return { json, record };
  }
  let excess = Buffer.byteLength(json) - maxBytes;
  if (excess <= 0) {
    return { json, record };
  }

  const shortened = { ...record } as Record<string, unknown>;
  for (const field of freeText) {
    for (const shorten of [cutLongTexts, emptied]) {
      const value = shortened[field];
      if (value === undefined || value === null) {
        break;
      }
      shortened[field] =
        typeof value === "string" ? cutBytes(value, excess) : shorten(value);
      json = JSON.stringify(shortened);
      excess = Buffer.byteLength(json) - maxBytes;
      if (excess <= 0) {
        return { json, record: JSON.parse(json) as T };
      }
    }
  }
  return null;
}

/** The text without its last characters, so that its JSON is shorter by at least `bytes`, or empty. */
function cutBytes(text: string, bytes: number): string {
  const goal = Buffer.byteLength(JSON.stringify(text)) - bytes;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const size = Buffer.byteLength(JSON.stringify(cutTo(text, middle)));
    if (size <= goal) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low === 0 ? "" : cutTo(text, low);
}

function cutTo(text: string, characters: number): string {
  if (text.length <= characters) {
    return text;
  }
  return text.slice(0, characters).toWellFormed() + CUT_MARK;
}

function cutLongTexts(value: unknown): unknown {
  if (typeof value === "string") {
    return cutTo(value, NESTED_TEXT_CHARACTERS);
  }
  if (Array.isArray(value)) {
    return value.map(cutLongTexts);
  }
  if (!isRecord(value)) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, nested]) => [name, cutLongTexts(nested)]),
  );
}

function emptied(value: unknown): unknown {
  if (Array.isArray(value)) {
    return [];
  }
  return value !== null && typeof value === "object" ? {} : value;
}
