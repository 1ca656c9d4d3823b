import {
  isRecord,
  listOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";

/** How ids of items begin, by type. */
const PREFIXES: Readonly<Record<string, string>> = {
  message: "msg",
  function_call: "fc",
  function_call_output: "fco",
  custom_tool_call: "ctc",
  custom_tool_call_output: "ctco",
  tool_search_call: "tsc",
  tool_search_output: "tso",
  reasoning: "rs",
  compaction: "cmp",
};
/** An id given by {@link withIds}, which no provider knows. */
const GIVEN = /^[a-z]+_[0-9a-f]{32}_\d+$/;

/** The items of an `input`: a text is a message of the user. */
export function itemsOf(input: unknown): readonly JsonRecord[] {
  return typeof input === "string"
    ? [{ type: "message", role: "user", content: input }]
    : recordsOf(input);
}

/** Items as they are stored and listed: each has an id, its type, and content as a list. `unique`: of a response or a conversation. */
export function withIds(
  items: readonly JsonRecord[],
  unique: string,
): readonly JsonRecord[] {
  const digits = unique.slice(unique.indexOf("_") + 1);
  return items.map((item, at) => {
    const type = textOf(item["type"]) || "message";
    const id =
      textOf(item["id"]) || `${PREFIXES[type] ?? "item"}_${digits}_${at}`;
    return type === "message"
      ? {
          ...item,
          id,
          type,
          status: textOf(item["status"]) || "completed",
          content: contentOf(item),
        }
      : { ...item, id, type };
  });
}

function contentOf({ role, content }: JsonRecord): readonly unknown[] {
  if (typeof content !== "string") {
    return listOf(content);
  }
  return role === "assistant"
    ? [{ type: "output_text", text: content, annotations: [] }]
    : [{ type: "input_text", text: content }];
}

/** A stored item as it is sent again. */
export function asInput(item: JsonRecord): JsonRecord {
  if (!GIVEN.test(textOf(item["id"]))) {
    return item;
  }
  const { id: _given, ...sent } = item;
  return sent;
}

/** The id of the item that an item of an input refers to; null: it is an item itself. */
export function referenceIn(item: unknown): string | null {
  if (!isRecord(item) || typeof item["id"] !== "string") {
    return null;
  }
  const { type, role } = item;
  return type === "item_reference" || (type == null && role === undefined)
    ? item["id"]
    : null;
}

/** The ids of items, as they are stored. */
export function idsOf(items: readonly JsonRecord[]): readonly string[] {
  const ids = items.map(({ id }) => storable(textOf(id)));
  return [...new Set(ids)].filter((id) => id !== "");
}

const MAX_ID_CHARACTERS = 256;

/** An id as Postgres can index it: without NUL and lone surrogates, and not longer than any real one. */
export function storable(id: string): string {
  return id
    .slice(0, MAX_ID_CHARACTERS)
    .toWellFormed()
    .replaceAll("\0", "\uFFFD");
}
