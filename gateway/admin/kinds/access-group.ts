import { z } from "zod";
import { inputOf, readOnly, settable, STAMPS } from "./field.ts";
import { rowOf, type Kind } from "./kind.ts";
import { out } from "./out.ts";
import { models, name } from "./values.ts";

const ACCESS_GROUP_FIELDS = {
  access_group_id: readOnly("id"),
  access_group_name: {
    ...settable("text", name),
    output: out.text,
    column: "text NOT NULL",
  },
  description: settable("text", z.string().max(2_000)),
  /** Names, wildcards and access groups of `model_info`, as in lists of allowed models. */
  access_model_names: settable("list", models),
  ...STAMPS,
} as const;

/** Models that keys and teams may call in addition to those of their own lists. */
export const ACCESS_GROUP: Kind = {
  table: "access_groups",
  noun: "access group",
  id: ["access_group_id"],
  field: "access_group_id",
  createdBy: "POST /v1/access_group",
  entity: null,
  fields: ACCESS_GROUP_FIELDS,
};

export const accessGroupFields = inputOf(ACCESS_GROUP_FIELDS);

const named = z.array(z.object({ id: out.text, name: out.text.nullable() }));

/** LiteLLM also groups MCP servers, agents and skills; here there are none. */
const NONE = {
  access_mcp_server_ids: z.array(z.never()),
  mcp_tool_permissions: z.null(),
  access_agent_ids: z.array(z.never()),
  access_skill_names: z.array(z.never()),
  access_mcp_servers: z.array(z.never()),
  access_agents: z.array(z.never()),
} as const;

export const accessGroupRow = z
  .object({
    ...rowOf(ACCESS_GROUP),
    ...NONE,
    assigned_team_ids: out.texts,
    assigned_key_ids: out.texts,
    assigned_teams: named,
    assigned_keys: named,
  })
  .meta({ id: "AccessGroup" });
