import { z } from "zod";
import {
  query,
  transaction,
  type Client,
  type Pool,
} from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { tokensNow } from "./key-tokens.ts";
import {
  ACCESS_GROUP,
  accessGroupFields,
  accessGroupRow,
} from "./kinds/access-group.ts";
import { KEY } from "./kinds/key.ts";
import type { Kind } from "./kinds/kind.ts";
import { TEAM } from "./kinds/team.ts";
import { name } from "./kinds/values.ts";
import { change, create, findOne, remove, unknown } from "./payers.ts";

/** LiteLLM's second name of the routes. */
const alsoAt = (path: string) => [
  path.replace("access_group", "unified_access_group"),
];

const assignments = {
  assigned_team_ids: z.array(name).nullish(),
  assigned_key_ids: z.array(name).nullish(),
} as const;

const fieldsWithAssignments = z.object({
  ...accessGroupFields,
  ...assignments,
});

const createGroup = adminRoute(
  "POST /v1/access_group",
  {
    summary:
      "Create an access group: models that its teams and keys may call in addition to their own lists.",
    input: z.object({
      ...accessGroupFields,
      ...assignments,
      access_group_name: name,
    }),
    answer: accessGroupRow,
    status: 201,
  },
  async (admin, given) => {
    const { assigned_team_ids: teams, assigned_key_ids: keys, ...rest } = given;
    const id = crypto.randomUUID();
    const row = await transaction(admin.pool, async (client) => {
      await rejectTakenName(client, given.access_group_name, id);
      const created = await create(admin, client, ACCESS_GROUP, {
        ...rest,
        access_group_id: id,
      });
      await assign(admin, client, id, { teams, keys });
      return created;
    });
    return answerGroup(admin.pool, row ?? {});
  },
  alsoAt("/v1/access_group"),
);

const listGroups = adminRoute(
  "GET /v1/access_group",
  {
    summary: "List the access groups, the newest first.",
    input: z.object({}),
    answer: z.array(accessGroupRow),
  },
  async ({ pool }) =>
    answerGroups(
      pool,
      await query<Row>(
        pool,
        "SELECT * FROM access_groups ORDER BY created_at DESC, access_group_id",
      ),
    ),
  alsoAt("/v1/access_group"),
);

const groupId = z.object({ access_group_id: name });

const showGroup = adminRoute(
  "GET /v1/access_group/:access_group_id",
  {
    summary: "Get an access group with its teams and keys.",
    input: groupId,
    answer: accessGroupRow,
  },
  async ({ pool }, id) =>
    answerGroup(pool, await findOne(pool, ACCESS_GROUP, id)),
  alsoAt("/v1/access_group/:access_group_id"),
);

const updateGroup = adminRoute(
  "PUT /v1/access_group/:access_group_id",
  {
    summary:
      "Change an access group: lists that are sent replace the stored ones; null resets a field.",
    input: fieldsWithAssignments.extend({ access_group_id: name }),
    answer: accessGroupRow,
  },
  async (admin, { access_group_id: id, ...given }) => {
    const { assigned_team_ids: teams, assigned_key_ids: keys, ...rest } = given;
    if (rest.access_group_name === null) {
      throw invalidParam(
        "access_group_name",
        "must not be null: send another name, or leave it out.",
      );
    }
    const row = await transaction(admin.pool, async (client) => {
      await rejectTakenName(client, rest.access_group_name, id);
      const changed = await change(
        admin,
        client,
        ACCESS_GROUP,
        { access_group_id: id },
        rest,
      );
      await assign(admin, client, id, {
        teams: teams === null ? [] : teams,
        keys: keys === null ? [] : keys,
      });
      return changed;
    });
    return answerGroup(admin.pool, row);
  },
  alsoAt("/v1/access_group/:access_group_id"),
);

const deleteGroup = adminRoute(
  "DELETE /v1/access_group/:access_group_id",
  {
    summary:
      "Delete an access group: its teams and keys keep the models of their own lists.",
    input: groupId,
    answer: z.null(),
    status: 204,
  },
  async (admin, { access_group_id: id }) => {
    await transaction(admin.pool, async (client) => {
      // Teams and keys that are being given the group wait, and then find none.
      const locked = await query(
        client,
        "SELECT FROM access_groups WHERE access_group_id = $1 FOR UPDATE",
        [id],
      );
      if (locked.length === 0) {
        throw unknown(ACCESS_GROUP, id);
      }
      await assign(admin, client, id, { teams: [], keys: [] });
      await remove(admin, client, ACCESS_GROUP, { access_group_id: id });
    });
  },
  alsoAt("/v1/access_group/:access_group_id"),
);

/** Throws 409 for the name of another group. */
async function rejectTakenName(
  client: Client,
  groupName: string | null | undefined,
  exceptId: string,
): Promise<void> {
  if (groupName == null) {
    return;
  }
  const taken = await query<{ access_group_id: string }>(
    client,
    "SELECT access_group_id FROM access_groups WHERE access_group_name = $1 AND access_group_id <> $2",
    [groupName, exceptId],
  );
  if (taken[0] !== undefined) {
    throw new CallError(
      "already_exists",
      `Access group '${groupName}' already exists. Change it with PUT /v1/access_group/${taken[0].access_group_id}.`,
      { param: "access_group_name" },
    );
  }
}

/** Gives a group to exactly these teams and keys; where undefined, they stay as they are. Throws 400 for unknown ones. */
async function assign(
  admin: Admin,
  client: Client,
  groupId: string,
  {
    teams,
    keys,
  }: {
    readonly teams: readonly string[] | null | undefined;
    readonly keys: readonly string[] | null | undefined;
  },
): Promise<void> {
  if (teams != null) {
    await assignTo(admin, client, groupId, TEAM, teams);
  }
  if (keys != null) {
    const tokens = await tokensNow(client, keys);
    await assignTo(admin, client, groupId, KEY, tokens);
  }
}

async function assignTo(
  admin: Admin,
  client: Client,
  groupId: string,
  of: Kind,
  ids: readonly string[],
): Promise<void> {
  const [id = ""] = of.id;
  const rows = await query<Row & { readonly access_group_ids: string[] }>(
    client,
    `SELECT ${id}, access_group_ids FROM ${of.table}
       WHERE ${id} = ANY($1) OR (access_group_ids <> '{}' AND access_group_ids @> ARRAY[$2]) ORDER BY ${id} FOR UPDATE`,
    [ids, groupId],
  );
  const found = new Set(rows.map((row) => row[id]));
  const missing = ids.find((one) => !found.has(one));
  if (missing !== undefined) {
    // Never a key itself: messages end up in logs.
    const which = of === KEY ? `ending in ${missing.slice(-4)}` : missing;
    throw new CallError(
      "invalid_request",
      `The ${of.noun} ${which} does not exist. Create it with ${of.createdBy}.`,
      { param: `assigned_${of.noun}_ids` },
    );
  }
  const chosen = new Set(ids);
  for (const row of rows) {
    const { access_group_ids: before } = row;
    const others = before.filter((one) => one !== groupId);
    const after = chosen.has(String(row[id])) ? [...others, groupId] : others;
    if (after.length !== before.length) {
      await change(
        admin,
        client,
        of,
        { [id]: row[id] },
        { access_group_ids: after },
      );
    }
  }
}

interface Assigned {
  readonly group_id: string;
  readonly id: string;
  readonly name: string | null;
}

/** Which of these groups teams and keys have. */
function assignedOf(
  pool: Pool,
  { table, id: [id] }: Kind,
  nameColumn: string,
  groupIds: readonly unknown[],
): Promise<readonly Assigned[]> {
  return query<Assigned & Row>(
    pool,
    `SELECT group_id, ${id} AS id, ${nameColumn} AS name FROM ${table}, unnest(access_group_ids) AS given (group_id)
       WHERE access_group_ids <> '{}' AND access_group_ids && $1 AND group_id = ANY($1) ORDER BY created_at, ${id}`,
    [groupIds],
  );
}

async function answerGroup(pool: Pool, row: Row): Promise<Row> {
  const [group] = await answerGroups(pool, [row]);
  return group ?? row;
}

async function answerGroups(
  pool: Pool,
  rows: readonly Row[],
): Promise<readonly Row[]> {
  const ids = rows.map((row) => row["access_group_id"]);
  const teams = await assignedOf(pool, TEAM, "team_alias", ids);
  const keys = await assignedOf(pool, KEY, "key_alias", ids);
  return rows.map((row) => {
    const own = (assigned: readonly Assigned[]) =>
      assigned
        .filter(({ group_id: groupId }) => groupId === row["access_group_id"])
        .map(({ id, name }) => ({ id, name }));
    return {
      ...row,
      access_mcp_server_ids: [],
      mcp_tool_permissions: null,
      access_agent_ids: [],
      access_skill_names: [],
      access_mcp_servers: [],
      access_agents: [],
      assigned_team_ids: own(teams).map(({ id }) => id),
      assigned_key_ids: own(keys).map(({ id }) => id),
      assigned_teams: own(teams),
      assigned_keys: own(keys),
    };
  });
}

export const ACCESS_GROUPS: readonly Route[] = [
  createGroup,
  listGroups,
  showGroup,
  updateGroup,
  deleteGroup,
];
