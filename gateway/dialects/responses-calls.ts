import {
  parseRecord,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { idOf, type ToolCallPart } from "./chat-answer.ts";
import {
  calledIn,
  chatName,
  namesIn,
  SEARCH,
  type ToolKind,
  type TranslatedTools,
} from "./responses-tools.ts";

/** Some servers leave out the arguments of a call that has none; clients parse them as JSON. */
export const NO_ARGUMENTS = "{}";

/** A call of chat as an item of an output. */
export function callItem(
  answerId: string,
  call: ToolCallPart,
  status: "in_progress" | "completed",
  tools: TranslatedTools,
): JsonRecord {
  const { called, kind } = tools.get(call.name) ?? {
    called: { name: call.name },
    kind: "function",
  };
  const { prefix, type } = ITEMS[kind];
  const own = `${idOf(prefix, answerId)}_${call.index}`;
  return {
    id: own,
    type,
    // A tool result must refer to the id of its call; not every server gives one.
    call_id: call.id === "" ? own : call.id,
    ...givenIn(call.arguments, kind, called, status === "completed"),
    status,
  };
}

const ITEMS = {
  function: { prefix: "fc", type: "function_call" },
  custom: { prefix: "ctc", type: "custom_tool_call" },
  search: { prefix: "tsc", type: "tool_search_call" },
} satisfies Readonly<Record<ToolKind, JsonRecord>>;

function givenIn(
  written: string,
  kind: ToolKind,
  called: object,
  ended: boolean,
): Readonly<Record<string, unknown>> {
  switch (kind) {
    case "function":
      return {
        ...called,
        arguments: ended ? written || NO_ARGUMENTS : written,
      };
    case "custom":
      return { ...called, input: textIn(written) };
    case "search":
      return { execution: "client", arguments: parseRecord(written) ?? {} };
  }
}

/** The text of a custom tool; all that was written by a model that left out the JSON around it. */
function textIn(written: string): string {
  const input = parseRecord(written)?.["input"];
  return typeof input === "string" ? input : written;
}

/**
 * The events that end a call before its item is done. What a custom tool gets is sent whole: only at its end is the JSON around it
 * read.
 */
export function endingEvents(
  item: JsonRecord,
  where: JsonRecord,
): readonly JsonRecord[] {
  const { type, name, arguments: written, input } = item;
  switch (type) {
    case "function_call":
      return [
        {
          type: "response.function_call_arguments.done",
          ...where,
          name,
          arguments: written,
        },
      ];
    case "custom_tool_call": {
      const delta = "response.custom_tool_call_input.delta";
      return [
        ...(input === "" ? [] : [{ type: delta, ...where, delta: input }]),
        { type: "response.custom_tool_call_input.done", ...where, input },
      ];
    }
    default:
      return [];
  }
}

/** An item of an input as a call of chat; null: it is none. */
export function callOf(item: JsonRecord): JsonRecord | null {
  const call = (name: string, written: string) => ({
    id: textOf(item["call_id"] ?? item["id"]),
    type: "function",
    function: { name, arguments: written },
  });
  switch (item["type"]) {
    case "function_call":
      return call(chatName(calledIn(item)), textOf(item["arguments"]));
    case "custom_tool_call": {
      const input = textOf(item["input"]);
      return call(chatName(calledIn(item)), JSON.stringify({ input }));
    }
    case "tool_search_call":
      return item["execution"] === "client"
        ? call(SEARCH, JSON.stringify(item["arguments"] ?? {}))
        : null;
    default:
      return null;
  }
}

/** What the model learns of the tools that a client has found. */
export function foundText({ tools }: JsonRecord): string {
  const names = recordsOf(tools).flatMap(namesIn);
  return names.length === 0
    ? "No tools were found."
    : `These tools can be called now: ${names.join(", ")}`;
}
