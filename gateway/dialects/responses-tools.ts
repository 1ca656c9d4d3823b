import type { CallBody } from "../calls/body.ts";
import { CallError } from "../http/errors.ts";
import {
  isRecord,
  listOf,
  present,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import type { Dialect } from "./dialect.ts";
import { functionName } from "./function-name.ts";

type Lack = (path: string) => void;

/** A function or a custom tool as a call of the Responses API names it. */
interface CalledTool {
  readonly name: string;
  readonly namespace?: string;
}

/** A custom tool takes a text, and not JSON; a search is the client's, for tools that it has not sent yet. */
export type ToolKind = "function" | "custom" | "search";

/** A tool that is called otherwise in chat. */
interface TranslatedTool {
  readonly called: CalledTool;
  readonly kind: ToolKind;
}

/** By the names that chat has for them. */
export type TranslatedTools = ReadonlyMap<string, TranslatedTool>;

/** The name of a function in chat, which has no namespaces. */
export function chatName({ name, namespace }: CalledTool): string {
  return namespace === undefined ? name : functionName(`${namespace}__${name}`);
}

/** What a call, a choice or a permitted tool names. */
export function calledIn({ name, namespace }: JsonRecord): CalledTool {
  return typeof namespace === "string" && namespace !== ""
    ? { name: textOf(name), namespace }
    : { name: textOf(name) };
}

/** The name of a client's search in chat. */
export const SEARCH = "tool_search";

/** All tools of a body but its plain functions. Bodies without any share one list. */
export function translatedTools(body: CallBody): TranslatedTools {
  const translated = offeredTools(body).flatMap(({ tool }) =>
    isNamespace(tool)
      ? recordsOf(tool["tools"]).flatMap((inner) =>
          translatedTool(inner, tool["name"]),
        )
      : kindOf(tool) === "function"
        ? []
        : translatedTool(tool),
  );
  return translated.length === 0
    ? NONE
    : new Map(translated.map((tool) => [chatName(tool.called), tool]));
}

const NONE: TranslatedTools = new Map();

interface OfferedTool {
  readonly tool: JsonRecord;
  readonly path: string;
}

/** The tools of a body, then those that the client has found since (`tool_search_output`). */
function offeredTools({ tools, input }: CallBody): readonly OfferedTool[] {
  const found = listOf(input).flatMap((item, index) => {
    const { type, tools: inItem } = recordOf(item);
    return type === "tool_search_output"
      ? atPath(inItem, `input[${index}].tools`)
      : [];
  });
  return [...atPath(tools, "tools"), ...found];
}

function atPath(tools: unknown, path: string): readonly OfferedTool[] {
  return listOf(tools).map((tool, index) => ({
    tool: recordOf(tool),
    path: `${path}[${index}]`,
  }));
}

function isNamespace({ type }: JsonRecord): boolean {
  return type === "namespace";
}

/** null: chat has no such tool. */
function kindOf({ type, name, execution }: JsonRecord): ToolKind | null {
  switch (type) {
    case "function":
    case "custom":
      return typeof name === "string" ? type : null;
    case "tool_search":
      return execution === "client" ? "search" : null;
    default:
      return null;
  }
}

function translatedTool(
  tool: JsonRecord,
  namespace?: unknown,
): readonly TranslatedTool[] {
  const kind = kindOf(tool);
  const name = kind === "search" ? SEARCH : tool["name"];
  return kind === null ? [] : [{ called: calledIn({ name, namespace }), kind }];
}

/** The names in chat of a tool, or of all in a namespace. */
export function namesIn(tool: JsonRecord): readonly string[] {
  return toolsOf(tool, "", () => undefined).map(nameOf);
}

/** The tools of a body as chat has them. Throws 400 where two of them get the same name. */
export function chatToolsOf(
  body: CallBody,
  dialect: Dialect,
  lack: Lack,
): readonly JsonRecord[] {
  const search = searchIn(body, dialect);
  const offered = offeredTools(body).filter(
    ({ tool }) => search === undefined || !isWebSearch(tool),
  );
  const tools = offered.map(({ tool, path }) => ({
    isFound: path.startsWith("input"),
    functions: toolsOf(tool, path, lack),
  }));
  const given = tools.flatMap(({ isFound, functions }) =>
    isFound ? [] : functions,
  );
  if (translatedTools(body).size > 0) {
    rejectSameNames(given);
  }
  // Several searches may find the same one.
  const names = new Set(given.map(nameOf));
  const found = tools
    .flatMap(({ isFound, functions }) => (isFound ? functions : []))
    .filter((tool) => names.size < names.add(nameOf(tool)).size);
  return [...given, ...found];
}

/** `web_search`, `web_search_preview` and others. */
export function isWebSearch({ type }: JsonRecord): boolean {
  return textOf(type).startsWith("web_search");
}

/** The search of a body as chat has it; null: there is none, or the provider cannot search. */
export function searchOptionsOf(
  body: CallBody,
  dialect: Dialect,
  lack: Lack,
): JsonRecord | null {
  const search = searchIn(body, dialect);
  if (search === undefined) {
    return null;
  }
  const { search_context_size: size, user_location, filters } = search.tool;
  if (filters != null) {
    lack(`${search.path}.filters`);
  }
  const { type, ...approximate } = recordOf(user_location);
  return present({
    search_context_size: size,
    user_location: type === undefined ? null : { type, approximate },
  });
}

function searchIn(
  body: CallBody,
  { searches }: Dialect,
): OfferedTool | undefined {
  const offered = offeredTools(body);
  const isAlone = offered.every(({ tool }) => isWebSearch(tool));
  return searches === true || (searches === "alone" && isAlone)
    ? offered.find(({ tool }) => isWebSearch(tool))
    : undefined;
}

function nameOf({ function: one }: JsonRecord): string {
  return textOf(recordOf(one)["name"]);
}

function toolsOf(
  tool: JsonRecord,
  path: string,
  lack: Lack,
): readonly JsonRecord[] {
  if (!isNamespace(tool) || typeof tool["name"] !== "string") {
    return functionOf(tool, path, lack);
  }
  // Chat has no place for what all functions of a namespace have in common.
  let common = textOf(tool["description"]);
  return listOf(tool["tools"]).flatMap((inner, index) => {
    const { name, description, ...rest } = recordOf(inner);
    const described = [textOf(description), common].filter(Boolean);
    const found = functionOf(
      { ...rest, name, description: described.join("\n\n") || null },
      `${path}.tools[${index}]`,
      lack,
      tool["name"],
    );
    common = found.length === 0 ? common : "";
    return found;
  });
}

function functionOf(
  tool: JsonRecord,
  path: string,
  lack: Lack,
  namespace?: unknown,
): readonly JsonRecord[] {
  const [translated] = translatedTool(tool, namespace);
  if (translated === undefined) {
    const { type } = tool;
    lack(`${path}${typeof type === "string" ? ` (${type})` : ""}`);
    return [];
  }
  const { called, kind } = translated;
  const { description, parameters, strict } =
    kind === "custom" ? functionOfText(tool) : tool;
  return [
    {
      type: "function",
      function: present({
        name: chatName(called),
        description,
        parameters,
        strict,
      }),
    },
  ];
}

/** Chat has neither tools that take a text nor grammars: the model is asked to follow one. */
function functionOfText({ description, format }: JsonRecord): JsonRecord {
  const { syntax, definition } = recordOf(format);
  const grammar =
    typeof definition === "string"
      ? `\`input\` follows this grammar (${textOf(syntax)}):\n${definition}`
      : "";
  return {
    description:
      [textOf(description), grammar].filter(Boolean).join("\n\n") || null,
    parameters: {
      type: "object",
      properties: {
        input: { type: "string", description: "The text for the tool." },
      },
      required: ["input"],
      additionalProperties: false,
    },
  };
}

function rejectSameNames(tools: readonly JsonRecord[]): void {
  const seen = new Set<string>();
  const twice = tools
    .map(nameOf)
    .find((name) => seen.size === seen.add(name).size);
  if (twice !== undefined) {
    throw new CallError(
      "invalid_request",
      `Two functions in \`tools\` have the name ${twice} for this model, which has no namespaces: rename one of them.`,
      { param: "tools" },
    );
  }
}

/** The choice of a body as chat has it. */
export function chatChoiceOf(body: CallBody, lack: Lack): unknown {
  const choice = body["tool_choice"];
  if (choice == null || typeof choice === "string") {
    return choice;
  }
  if (isRecord(choice)) {
    if (choice["type"] === "function" || choice["type"] === "custom") {
      return namedFunction(calledIn(choice));
    }
    if (choice["type"] === "allowed_tools") {
      return {
        type: "allowed_tools",
        allowed_tools: {
          mode: choice["mode"],
          tools: permittedBy(choice, body).map(namedFunction),
        },
      };
    }
  }
  lack("tool_choice");
  return null;
}

/** A namespace permits all of its tools, and named again no more. */
function permittedBy(
  choice: JsonRecord,
  body: CallBody,
): readonly CalledTool[] {
  const inNamespaces = Map.groupBy(
    [...translatedTools(body).values()].map(({ called }) => called),
    ({ namespace }) => namespace,
  );
  return recordsOf(choice["tools"]).flatMap((tool) => {
    if (!isNamespace(tool)) {
      return [calledIn(tool)];
    }
    const name = textOf(tool["name"]);
    const permitted = inNamespaces.get(name) ?? [];
    inNamespaces.delete(name);
    return permitted;
  });
}

function namedFunction(called: CalledTool): JsonRecord {
  return { type: "function", function: { name: chatName(called) } };
}
