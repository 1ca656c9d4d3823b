import { listOf, recordOf, recordsOf, textOf } from "../../core/json.ts";
import type { JsonRecord } from "../../core/json.ts";

const COMPACTION = "compact_20260112";

/** The tools of a server of `mcp_servers`, which it names. */
export const MCP_TOOLSET = "mcp_toolset";

/** Tools of Anthropic's, by type, with the beta that they belong to. */
const TOOL_BETAS: ReadonlyMap<string, string> = new Map([
  ["computer_20241022", "computer-use-2024-10-22"],
  ["computer_20250124", "computer-use-2025-01-24"],
  ["computer_20251124", "computer-use-2025-11-24"],
  ["code_execution_20250522", "code-execution-2025-05-22"],
  ["code_execution_20250825", "code-execution-2025-08-25"],
]);

/**
 * The betas of Anthropic's own parameters and tools in a chat, whose clients do not know the header.
 * https://platform.claude.com/docs/en/api/beta-headers
 */
export function betasOf(params: JsonRecord): readonly string[] {
  const edits = recordsOf(
    recordOf(contextManagement(params["context_management"]))["edits"],
  ).map(({ type }) => type);
  const tools = recordsOf(params["tools"]);
  const hasToolsets = tools.some(({ type }) => type === MCP_TOOLSET);
  const hasServers = listOf(params["mcp_servers"]).length > 0;
  const compacts = (type: unknown) => type === COMPACTION;
  const hasSkills = listOf(recordOf(params["container"])["skills"]).length > 0;
  const used: readonly (readonly [boolean, string])[] = [
    [edits.some(compacts), "compact-2026-01-12"],
    [!edits.every(compacts), "context-management-2025-06-27"],
    [hasServers && !hasToolsets, "mcp-client-2025-04-04"],
    [hasToolsets, "mcp-client-2025-11-20"],
    [hasSkills, "code-execution-2025-08-25"],
    [hasSkills, "skills-2025-10-02"],
    [params["speed"] === "fast", "fast-mode-2026-02-01"],
  ];
  return [
    ...used.flatMap(([isUsed, beta]) => (isUsed ? [beta] : [])),
    ...tools.flatMap(({ type }) => TOOL_BETAS.get(textOf(type)) ?? []),
  ];
}

/** OpenAI's list as Anthropic's edits, whose only one of the same meaning is the compaction; others have no effect. */
export function contextManagement(given: unknown): unknown {
  if (!Array.isArray(given)) {
    return given;
  }
  const edits = recordsOf(given)
    .filter(({ type }) => type === "compaction")
    .map(({ compact_threshold: value }) => ({
      type: COMPACTION,
      ...(value == null ? {} : { trigger: { type: "input_tokens", value } }),
    }));
  return edits.length === 0 ? null : { edits };
}
