import { MCP_TOOLSET } from "./anthropic-betas.ts";
import type { Lack } from "./anthropic-content.ts";
import type { ModelTraits } from "./anthropic-model.ts";
import { anthropicSchema } from "./anthropic-schema.ts";
import { searchTools } from "./anthropic-search.ts";
import {
  isRecord,
  listOf,
  present,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";

interface ToolOptions {
  readonly tools: readonly JsonRecord[];
  readonly toolChoice: JsonRecord | null;
  /** Whether some tool must be called. */
  readonly forced: boolean;
}

/** Tools and tool choice of an OpenAI body in Anthropic's shape. Anthropic's own tools pass unchanged. */
export function readToolOptions(
  params: JsonRecord,
  lack: Lack,
  { forcedTools }: ModelTraits,
): ToolOptions {
  const choice = params["tool_choice"];
  const allowed = allowedTools(choice);
  const offered = listOf(params["tools"])
    .flatMap((tool, index) => toolOf(tool, `tools[${index}]`, lack))
    .filter((tool) => allowed?.names.has(textOf(tool["name"])) ?? true);
  const tools = [
    ...offered,
    // Two tools of one name are rejected.
    ...searchTools(params["web_search_options"], lack).filter(({ name }) =>
      offered.every((tool) => tool["name"] !== name),
    ),
  ];
  if (tools.length === 0) {
    return { tools, toolChoice: null, forced: false };
  }
  const wanted = choiceOf(allowed?.mode ?? choice, lack);
  const demands = wanted?.["type"] === "any" || wanted?.["type"] === "tool";
  const forced = demands && forcedTools;
  if (demands && !forced) {
    lack("tool_choice");
  }
  const chosen = demands && !forced ? { type: "auto" } : wanted;
  const single = params["parallel_tool_calls"] === false;
  const toolChoice =
    single && chosen?.["type"] !== "none"
      ? { ...(chosen ?? { type: "auto" }), disable_parallel_tool_use: true }
      : chosen;
  return { tools, toolChoice, forced };
}

function toolOf(
  tool: unknown,
  path: string,
  lack: Lack,
): readonly JsonRecord[] {
  if (isRecord(tool) && tool["type"] === "function") {
    const written = tool["function"];
    if (isRecord(written) && typeof written["name"] === "string") {
      const schema = schemaOf(written["parameters"]);
      const strict = written["strict"] === true;
      return [
        present({
          name: written["name"],
          description: written["description"],
          input_schema: strict ? anthropicSchema(schema) : schema,
          strict: strict ? true : null,
          cache_control: tool["cache_control"] ?? written["cache_control"],
        }),
      ];
    }
  } else if (
    isRecord(tool) &&
    (tool["type"] === MCP_TOOLSET ||
      (typeof tool["name"] === "string" &&
        (tool["type"] !== "custom" || isRecord(tool["input_schema"]))))
  ) {
    return [tool];
  }
  lack(path);
  return [];
}

/** An input schema must be that of an object. */
function schemaOf(parameters: unknown): JsonRecord {
  return {
    type: "object",
    ...(isRecord(parameters) ? parameters : { properties: {} }),
  };
}

function allowedTools(
  choice: unknown,
): { readonly mode: unknown; readonly names: ReadonlySet<string> } | null {
  if (!isRecord(choice) || choice["type"] !== "allowed_tools") {
    return null;
  }
  const allowed = recordOf(choice["allowed_tools"]);
  return {
    mode: allowed["mode"] === "required" ? "required" : "auto",
    names: new Set(
      recordsOf(allowed["tools"]).map((tool) =>
        textOf(recordOf(tool["function"])["name"] ?? tool["name"]),
      ),
    ),
  };
}

function choiceOf(choice: unknown, lack: Lack): JsonRecord | null {
  switch (choice) {
    case undefined:
      return null;
    case "auto":
    case "none":
      return { type: choice };
    case "required":
    case "any":
      return { type: "any" };
  }
  if (isRecord(choice)) {
    const name = recordOf(choice["function"])["name"];
    if (choice["type"] === "function" && typeof name === "string") {
      return { type: "tool", name };
    }
    if (["auto", "any", "none", "tool"].includes(textOf(choice["type"]))) {
      return choice;
    }
  }
  lack("tool_choice");
  return null;
}
