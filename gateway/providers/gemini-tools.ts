import type { CallBody } from "../calls/body.ts";
import { isWebSearch } from "../dialects/responses-tools.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import {
  isRecord,
  listOf,
  recordOf,
  recordsOf,
  type JsonRecord,
} from "../../core/json.ts";
import { googleBody } from "./gemini-thinking.ts";

/** Tools that run at Google, and whose results are in the text and its sources, by both spellings of their names. */
const TOOLS: readonly (readonly [RegExp, string])[] = [
  [/^google_?search$/i, "googleSearch"],
  [/^google_?maps$/i, "googleMaps"],
  [/^url_?context$/i, "urlContext"],
];

/** A tool of Google's as a chat has it in LiteLLM's dialect (`{"googleSearch": {}}`); null: it is none. */
function googleTool(tool: unknown): JsonRecord | null {
  const record = recordOf(tool);
  if (isWebSearch(record)) {
    return { googleSearch: {} };
  }
  for (const [name, value] of Object.entries(record)) {
    const known = TOOLS.find(([spelling]) => spelling.test(name));
    if (known !== undefined && isRecord(value)) {
      return { [known[1]]: value };
    }
  }
  return null;
}

/** Where a chat has tools that only Google knows. */
export function googleToolPaths(body: CallBody): readonly string[] {
  return listOf(body["tools"]).flatMap((tool, index) =>
    isOfGoogle(tool) ? [`tools[${index}] (${namesIn(tool)})`] : [],
  );
}

/** Leaves out the tools of a chat that only Google knows. */
export function leaveOutGoogleTools(sent: Record<string, unknown>): void {
  const tools = listOf(sent["tools"]);
  const others = tools.filter((tool) => !isOfGoogle(tool));
  if (others.length === tools.length) {
    return;
  }
  sent["tools"] = others;
  if (others.length === 0) {
    delete sent["tools"];
    delete sent["tool_choice"];
  }
}

function isOfGoogle(tool: unknown): boolean {
  return !isWebSearch(recordOf(tool)) && googleTool(tool) !== null;
}

function namesIn(tool: unknown): string {
  return Object.keys(recordOf(tool)).join(", ");
}

/**
 * The tools of Google's that a chat asks for. Beside functions they are rejected, unless each of their steps comes back with the next call,
 * for which chat has no place. https://ai.google.dev/gemini-api/docs/tool-combination
 */
export function googleTools(body: CallBody): readonly JsonRecord[] {
  const asked = recordsOf(body["tools"]).map(googleTool);
  const tools = asked.filter((tool) => tool !== null);
  if (tools.length < asked.length) {
    return [];
  }
  return isRecord(body["web_search_options"]) &&
    !tools.some((tool) => "googleSearch" in tool)
    ? [...tools, { googleSearch: {} }]
    : tools;
}

/** Those of the call, else of the configuration; undefined: Google's own. */
export function safetySettings(
  body: CallBody,
  { defaults }: PricedDeployment,
): unknown {
  return [body, defaults]
    .flatMap((fields) => [
      fields["safety_settings"],
      googleBody(fields)["safety_settings"],
    ])
    .find((settings) => settings != null);
}
