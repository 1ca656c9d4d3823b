import { isDeepStrictEqual } from "node:util";
import { readable, shortened } from "../../../core/words.ts";

type Row = Readonly<Record<string, unknown>>;

/** They change with every change, or repeat what the entry has already. */
const UNSHOWN =
  /^(?:token|id|key_name|created_at|created_by|updated_at|updated_by)$/;
const MAX_CHARACTERS = 80;

/** The fields that a change set, as "max_budget: 1 → 2"; of a new object those that are not empty and not its id. */
export function changesIn(
  before: Row | null,
  after: Row | null,
  id = "",
): readonly string[] {
  if (after === null) {
    return [];
  }
  return Object.entries(after).flatMap(([field, value]) => {
    const old = before?.[field];
    if (UNSHOWN.test(field) || value === id || isSame(old, value)) {
      return [];
    }
    const shown = `${field}: ${words(value)}`;
    return before === null
      ? [shown]
      : [`${field}: ${words(old)} → ${words(value)}`];
  });
}

function isSame(old: unknown, value: unknown): boolean {
  return isDeepStrictEqual(old, value) || (isEmpty(old) && isEmpty(value));
}

function isEmpty(value: unknown): boolean {
  return (
    value === undefined ||
    value === null ||
    value === false ||
    value === "" ||
    (typeof value === "object" && Object.keys(value).length === 0)
  );
}

function words(value: unknown): string {
  if (isEmpty(value)) {
    return "none";
  }
  const text = readable(
    typeof value === "string" ? value : JSON.stringify(value),
  );
  return shortened(text, MAX_CHARACTERS);
}
