import { createHash } from "node:crypto";
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

type Lack = (path: string) => void;

/** A function as a call of the Responses API names it. */
export interface CalledFunction {
  readonly name: string;
  readonly namespace?: string;
}

/** The functions of namespaces by the names that chat has for them. */
export type CalledFunctions = ReadonlyMap<string, CalledFunction>;

/** What the names of functions in chat consist of. */
const NOT_IN_NAMES = /[^a-zA-Z0-9_-]/g;
const MAX_NAME_CHARACTERS = 64;
const HASH_CHARACTERS = 8;

/** The name of a function in chat, which has no namespaces: the same in every call of a conversation. */
export function chatName({ name, namespace }: CalledFunction): string {
  if (namespace === undefined) {
    return name;
  }
  const joined = `${namespace}__${name}`;
  const allowed = joined.replaceAll(NOT_IN_NAMES, "_");
  if (allowed === joined && joined.length <= MAX_NAME_CHARACTERS) {
    return joined;
  }
  const digest = createHash("sha256").update(joined).digest("hex");
  const kept = MAX_NAME_CHARACTERS - HASH_CHARACTERS - 1;
  return `${allowed.slice(0, kept)}_${digest.slice(0, HASH_CHARACTERS)}`;
}

/** What a call, a choice or a permitted tool names. */
export function calledIn({ name, namespace }: JsonRecord): CalledFunction {
  return typeof namespace === "string" && namespace !== ""
    ? { name: textOf(name), namespace }
    : { name: textOf(name) };
}

/** The functions in namespaces of a body. Bodies without any share one list. */
export function calledFunctions({ tools }: CallBody): CalledFunctions {
  const namespaces = recordsOf(tools).filter(isNamespace);
  return namespaces.length === 0
    ? NONE
    : new Map(
        namespaces
          .flatMap(functionsIn)
          .map((called) => [chatName(called), called]),
      );
}

const NONE: CalledFunctions = new Map();

function isNamespace({ type }: JsonRecord): boolean {
  return type === "namespace";
}

function functionsIn(namespace: JsonRecord): readonly CalledFunction[] {
  return recordsOf(namespace["tools"])
    .filter(({ type, name }) => type === "function" && typeof name === "string")
    .map(({ name }) => calledIn({ name, namespace: namespace["name"] }));
}

/** The tools of a body as chat has them. Throws 400 where two of them get the same name. */
export function chatToolsOf(body: CallBody, lack: Lack): readonly JsonRecord[] {
  const tools = listOf(body["tools"]).flatMap((tool, index) =>
    toolsOf(recordOf(tool), `tools[${index}]`, lack),
  );
  if (calledFunctions(body).size > 0) {
    rejectSameNames(tools);
  }
  return tools;
}

function toolsOf(
  tool: JsonRecord,
  path: string,
  lack: Lack,
): readonly JsonRecord[] {
  if (!isNamespace(tool) || typeof tool["name"] !== "string") {
    return functionOf(tool, path, lack, calledIn({ name: tool["name"] }));
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
      calledIn({ name, namespace: tool["name"] }),
    );
    common = found.length === 0 ? common : "";
    return found;
  });
}

function functionOf(
  { type, name, description, parameters, strict }: JsonRecord,
  path: string,
  lack: Lack,
  called: CalledFunction,
): readonly JsonRecord[] {
  if (type === "function" && typeof name === "string") {
    return [
      {
        type,
        function: present({
          name: chatName(called),
          description,
          parameters,
          strict,
        }),
      },
    ];
  }
  lack(`${path}${typeof type === "string" ? ` (${type})` : ""}`);
  return [];
}

function rejectSameNames(tools: readonly JsonRecord[]): void {
  const names = tools.map(({ function: one }) => textOf(recordOf(one)["name"]));
  const seen = new Set<string>();
  const twice = names.find((name) => seen.size === seen.add(name).size);
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
    if (choice["type"] === "function") {
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

/** A namespace permits all of its functions, and named again no more. */
function permittedBy(
  choice: JsonRecord,
  body: CallBody,
): readonly CalledFunction[] {
  const functions = Map.groupBy(
    calledFunctions(body).values(),
    ({ namespace = "" }) => namespace,
  );
  return recordsOf(choice["tools"]).flatMap((tool) => {
    if (!isNamespace(tool)) {
      return [calledIn(tool)];
    }
    const name = textOf(tool["name"]);
    const permitted = functions.get(name) ?? [];
    functions.delete(name);
    return permitted;
  });
}

function namedFunction(called: CalledFunction): JsonRecord {
  return { type: "function", function: { name: chatName(called) } };
}
