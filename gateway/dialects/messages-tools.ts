import type { CallBody } from "../calls/body.ts";
import {
  isRecord,
  listOf,
  present,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import type { ToolCallPart } from "./chat-answer.ts";
import { functionName } from "./function-name.ts";
import { isStrictSchema } from "./strict-schema.ts";

/** A tool and where it is in the body. */
interface Tool {
  readonly definition: JsonRecord;
  readonly path: string;
}

/** A message offers a tool to the model, or withdraws it. */
interface ToolChange {
  readonly name: string;
  readonly offers: boolean;
  /** null: a tool that `tools` or an earlier message defines. */
  readonly defined: Tool | null;
}

/** Anthropic's own search for tools, which finds those that are deferred. */
const TOOL_SEARCH = "tool_search_tool_";

/** The tools of a body as chat has them, and its choice of one. */
export function chatToolsOf(
  body: CallBody,
  messages: readonly JsonRecord[],
  lack: (path: string) => void,
): JsonRecord {
  const declared = listOf(body["tools"]).map((tool, index) => ({
    definition: recordOf(tool),
    path: `tools[${index}]`,
  }));
  const tools = offeredAtEnd(declared, messages).flatMap((tool) =>
    functionOf(tool, lack),
  );
  if (tools.length === 0) {
    return {};
  }
  const choice = recordOf(body["tool_choice"]);
  return {
    tools,
    ...present({
      tool_choice: choiceOf(choice),
      parallel_tool_calls:
        choice["disable_parallel_tool_use"] === true ? false : null,
    }),
  };
}

/**
 * The tools that the model has at the end of a conversation: chat has one list for all of it. Deferred tools are not offered until a
 * message refers to them; agents load them so. Those follow the others, so that a provider still finds the cached prefix.
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool
 */
function offeredAtEnd(
  declared: readonly Tool[],
  messages: readonly JsonRecord[],
): readonly Tool[] {
  const searchable = declared.some(({ definition }) =>
    textOf(definition["type"]).startsWith(TOOL_SEARCH),
  );
  const known = new Map<string, Tool>();
  for (const tool of declared) {
    const name = textOf(tool.definition["name"]);
    // The provider rejects a name that is given twice, or not at all.
    known.set(name === "" || known.has(name) ? tool.path : name, tool);
  }
  const offered = new Map(
    [...known].filter(
      ([, { definition }]) =>
        searchable || definition["defer_loading"] !== true,
    ),
  );
  for (const { name, offers, defined } of messages.flatMap(toolChangesIn)) {
    if (defined !== null) {
      known.set(name, defined);
    }
    const tool = known.get(name);
    if (!offers) {
      offered.delete(name);
    } else if (tool !== undefined) {
      offered.set(name, tool);
    }
  }
  return [...offered.values()];
}

function toolChangesIn(
  { role, content }: JsonRecord,
  message: number,
): readonly ToolChange[] {
  return recordsOf(content).flatMap((block, index) => {
    switch (block["type"]) {
      case "tool_result":
        return role === "user" ? loadedBy(block) : [];
      case "tool_addition":
      case "tool_removal":
        return role === "system"
          ? [changeOf(block, `messages[${message}].content[${index}]`)]
          : [];
      default:
        return [];
    }
  });
}

function loadedBy(result: JsonRecord): readonly ToolChange[] {
  return recordsOf(result["content"])
    .filter(({ type }) => type === "tool_reference")
    .map((reference) => ({
      name: textOf(reference["tool_name"]),
      offers: true,
      defined: null,
    }));
}

/** https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages */
function changeOf(block: JsonRecord, path: string): ToolChange {
  const tool = recordOf(block["tool"]);
  const definition = recordOf(tool["definition"]);
  const isDefinition = tool["type"] === "tool_definition";
  return {
    name: textOf(isDefinition ? definition["name"] : tool["name"]),
    offers: block["type"] === "tool_addition",
    defined: isDefinition ? { definition, path: `${path}.tool` } : null,
  };
}

function functionOf(
  { definition, path }: Tool,
  lack: (path: string) => void,
): readonly JsonRecord[] {
  const { name, type, input_schema: schema, ...rest } = definition;
  // Anthropic's server tools and toolsets have a type and no schema.
  if (typeof name !== "string" || !isRecord(schema)) {
    lack(`${path}${typeof type === "string" ? ` (${type})` : ""}`);
    return [];
  }
  return [
    {
      type: "function",
      function: present({
        name: functionName(name),
        description: rest["description"],
        parameters: schema,
        strict: rest["strict"] === true && isStrictSchema(schema) ? true : null,
      }),
    },
  ];
}

function choiceOf(choice: JsonRecord): unknown {
  switch (choice["type"]) {
    case "auto":
    case "none":
      return choice["type"];
    case "any":
      return "required";
    case "tool":
      return {
        type: "function",
        function: { name: functionName(textOf(choice["name"])) },
      };
    default:
      return null;
  }
}

/** Calls by the names of a body's tools: a name in chat is shorter than it may be in the Messages API. */
export function namedCalls(
  calls: readonly ToolCallPart[],
  { tools, messages }: CallBody,
): readonly ToolCallPart[] {
  // Only the first part of a call in a stream has a name.
  if (calls.every(({ name }) => name === "")) {
    return calls;
  }
  const added = recordsOf(messages)
    .flatMap(toolChangesIn)
    .flatMap(({ defined }) => (defined === null ? [] : [defined.definition]));
  const names = new Map(
    [...recordsOf(tools), ...added].map(
      ({ name }) => [functionName(textOf(name)), textOf(name)] as const,
    ),
  );
  return calls.map((call) => ({
    ...call,
    name: names.get(call.name) ?? call.name,
  }));
}
