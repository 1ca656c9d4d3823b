import type { Row } from "../database/rows.ts";
import { isEmpty } from "./convert.ts";
import type { Notes } from "./import-notes.ts";
import type { Source, SourceTable } from "./source.ts";

/** What LiteLLM's pages store and the import leaves out: kind, column of the name, and what to do instead. */
const OTHERS: readonly (readonly [
  table: SourceTable,
  kind: string,
  name: string,
  why: string,
])[] = [
  [
    "settings",
    "settings",
    "param_name",
    "settings of LiteLLM's database are not imported: write them in the configuration file",
  ],
  [
    "guardrails",
    "guardrails",
    "guardrail_name",
    "guardrails are not imported: configure them under the same names",
  ],
  [
    "accessGroups",
    "access groups",
    "access_group_name",
    "create them with POST /v1/access_group",
  ],
  [
    "projects",
    "projects",
    "project_id",
    "there are no projects: create teams with their models and limits",
  ],
  [
    "policies",
    "policies",
    "policy_name",
    "there are no policies: set their guardrails on teams, keys or models",
  ],
  [
    "tokenKeys",
    "keys of tokens (JWT)",
    "jwt_claim_value",
    "tokens are not mapped to keys: the section `jwt` of the configuration file says which user and team a token belongs to",
  ],
  ["agents", "agents", "agent_name", "there are no agents"],
  [
    "mcpServers",
    "MCP servers",
    "server_id",
    "there are no MCP servers: connect clients to each",
  ],
  [
    "prompts",
    "prompts",
    "prompt_id",
    "there are no stored prompts: send the messages with each call",
  ],
  [
    "vectorStores",
    "vector stores",
    "vector_store_id",
    "there are no vector stores",
  ],
];

/** LiteLLM keeps its own counters beside them. */
const SETTINGS: ReadonlySet<unknown> = new Set([
  "environment_variables",
  "general_settings",
  "litellm_settings",
  "router_settings",
]);

/** Lists what is not imported at all, so that nothing is lost unnoticed. */
export async function listOthers(source: Source, notes: Notes): Promise<void> {
  for (const [table, kind, column, why] of OTHERS) {
    for (const row of await source.rows(table)) {
      if (table !== "settings" || isSet(row)) {
        notes.left(kind, String(row[column]), why);
      }
    }
  }
}

function isSet(row: Row): boolean {
  return SETTINGS.has(row["param_name"]) && !isEmpty(row["param_value"]);
}
