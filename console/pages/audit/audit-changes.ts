import { isDeepStrictEqual } from "node:util";
import { capital, readable, shortened } from "../../../core/words.ts";
import { KEY_FIELDS } from "../nouns/key-noun.ts";

type Row = Readonly<Record<string, unknown>>;

/** They change with every change, or repeat what the entry has already. */
const UNSHOWN =
  /^(?:token|id|key_name|created_at|created_by|updated_at|updated_by)$/;
const MAX_CHARACTERS = 80;
/** As in the form of a key; users and teams have the same fields. */
const LABELS = new Map(KEY_FIELDS.map(({ name, label }) => [name, label]));
const TIME = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)[\d:.]*Z$/;

/** The fields that a change set, as "Budget (USD): 1 → 2"; of a new object those that are not empty and not its id. */
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
    const isSwitch = typeof value === "boolean" || typeof old === "boolean";
    const empty = isSwitch ? "no" : "none";
    const now = isEmpty(value) ? empty : words(value);
    return before === null
      ? [`${labelOf(field)}: ${now}`]
      : [`${labelOf(field)}: ${isEmpty(old) ? empty : words(old)} → ${now}`];
  });
}

function labelOf(field: string): string {
  return LABELS.get(field) ?? capital(field.replaceAll("_", " "));
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
  return shortened(readable(textOf(value)), MAX_CHARACTERS);
}

function textOf(value: unknown): string {
  if (typeof value === "string") {
    return value.replace(TIME, "$1 $2 UTC");
  }
  if (value === true) {
    return "yes";
  }
  return Array.isArray(value) && value.every((each) => typeof each === "string")
    ? value.join(", ")
    : JSON.stringify(value);
}
