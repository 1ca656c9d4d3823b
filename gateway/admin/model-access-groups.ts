import { z } from "zod";
import { query, transaction, type Client } from "../database/pool.ts";
import { updateRows } from "../database/rows.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { accessGroupsOf } from "../routing/catalog.ts";
import type { ModelRow } from "../routing/stored-models.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { out } from "./kinds/out.ts";
import { name } from "./kinds/values.ts";
import { auditModel } from "./model-rows.ts";

/**
 * LiteLLM's access groups of models: names in `model_info.access_groups`, which lists of allowed models may contain. Those of
 * stored models are changed here, those of the configuration file there.
 */

const groupRow = z.object({
  access_group: out.text,
  model_names: out.texts,
  deployment_count: out.count,
  /** LiteLLM's groups can have a budget. */
  spend: z.null(),
  budget: z.null(),
});

const changedRow = z.object({
  access_group: out.text,
  model_names: out.texts.nullable(),
  model_ids: out.texts.nullable(),
  models_updated: out.count,
});

const members = {
  model_names: z.array(name).nullish(),
  model_ids: z.array(name).nullish(),
} as const;

type Members = z.output<z.ZodObject<typeof members>>;

const createGroup = adminRoute(
  "POST /access_group/new",
  {
    summary:
      "Create an access group of stored models, by name or id. Lists of allowed models may then contain its name.",
    input: z.object({ ...members, access_group: name }),
    answer: changedRow,
  },
  async (admin, { access_group: group, ...given }) => {
    const updated = await changeModels(admin, async (client) => {
      const rows = await lockModels(client);
      if (membersOf(admin, rows, group).length > 0) {
        throw new CallError(
          "already_exists",
          `Access group '${group}' already exists. Change it with PUT /access_group/${encodeURIComponent(group)}/update.`,
          { param: "access_group" },
        );
      }
      const chosen = chosenModels(admin, rows, given);
      return setMembers(admin, client, group, chosen, chosen);
    });
    return answerChange(group, given, updated);
  },
);

const updateGroup = adminRoute(
  "PUT /access_group/:access_group/update",
  {
    summary:
      "Replace the stored models of an access group. Models of the configuration file stay in it.",
    input: z.object({ ...members, access_group: name }),
    answer: changedRow,
  },
  async (admin, { access_group: group, ...given }) => {
    const updated = await changeModels(admin, async (client) => {
      const rows = await lockModels(client);
      requireGroup(admin, rows, group);
      const chosen = chosenModels(admin, rows, given);
      await setMembers(admin, client, group, rows, chosen);
      return chosen.length;
    });
    return answerChange(group, given, updated);
  },
);

const deleteGroup = adminRoute(
  "DELETE /access_group/:access_group/delete",
  {
    summary:
      "Delete an access group of stored models. Lists of allowed models keep its name, which then allows nothing.",
    input: z.object({ access_group: name }),
    answer: z.object({
      access_group: out.text,
      models_updated: out.count,
      message: out.text,
    }),
  },
  async (admin, { access_group: group }) => {
    const updated = await changeModels(admin, async (client) => {
      const rows = await lockModels(client);
      requireGroup(admin, rows, group);
      const ofFile = admin.gateway.config.models.find((model) =>
        accessGroupsOf(model).includes(group),
      );
      if (ofFile !== undefined) {
        throw new CallError(
          "invalid_request",
          `Model ${ofFile.alias} is in access group '${group}' by the configuration file: change its \`model_info.access_groups\` there, then POST /config/reload.`,
          { param: "access_group" },
        );
      }
      return setMembers(admin, client, group, rows, []);
    });
    return {
      access_group: group,
      models_updated: updated,
      message: `Access group '${group}' deleted successfully`,
    };
  },
);

const listGroups = adminRoute(
  "GET /access_group/list",
  {
    summary: "List the access groups of models, by name.",
    input: z.object({}),
    answer: z.object({ access_groups: z.array(groupRow) }),
  },
  async (admin) => {
    const rows = await allModels(admin);
    const groups = new Set(
      [...rows, ...admin.gateway.config.models].flatMap(accessGroupsOf),
    );
    return {
      access_groups: [...groups]
        .sort()
        .map((group) => describe(admin, rows, group)),
    };
  },
);

const showGroup = adminRoute(
  "GET /access_group/:access_group/info",
  {
    summary: "Get an access group of models.",
    input: z.object({ access_group: name }),
    answer: groupRow,
  },
  async (admin, { access_group: group }) => {
    const rows = await allModels(admin);
    requireGroup(admin, rows, group);
    return describe(admin, rows, group);
  },
);

type StoredRow = ModelRow & Record<string, unknown>;

function allModels({ pool }: Admin): Promise<readonly StoredRow[]> {
  return query<StoredRow>(pool, "SELECT * FROM models ORDER BY model_id");
}

function lockModels(client: Client): Promise<readonly StoredRow[]> {
  return query<StoredRow>(
    client,
    "SELECT * FROM models ORDER BY model_id FOR UPDATE",
  );
}

/** Runs changes of stored models in a transaction; they are in effect when it returns. */
async function changeModels(
  admin: Admin,
  apply: (client: Client) => Promise<number>,
): Promise<number> {
  const changed = await transaction(admin.pool, apply);
  await admin.gateway.reloadModels();
  return changed;
}

/** The names of the models in a group, one for each deployment. */
function membersOf(
  { gateway }: Admin,
  rows: readonly ModelRow[],
  group: string,
): readonly string[] {
  return [
    ...gateway.config.models
      .filter((model) => accessGroupsOf(model).includes(group))
      .map(({ alias }) => alias),
    ...rows
      .filter((row) => accessGroupsOf(row).includes(group))
      .map((row) => row.model_name),
  ];
}

function requireGroup(
  admin: Admin,
  rows: readonly ModelRow[],
  group: string,
): void {
  if (membersOf(admin, rows, group).length === 0) {
    throw new CallError(
      "unknown_object",
      `Access group '${group}' not found. GET /access_group/list lists the access groups.`,
      { param: "access_group" },
    );
  }
}

function describe(admin: Admin, rows: readonly ModelRow[], group: string) {
  const names = membersOf(admin, rows, group);
  return {
    access_group: group,
    model_names: [...new Set(names)].sort(),
    deployment_count: names.length,
    spend: null,
    budget: null,
  };
}

/** The stored models that a request names: by id, else by name all that are not a team's own. Throws 400 for others. */
function chosenModels<Stored extends ModelRow>(
  { gateway }: Admin,
  rows: readonly Stored[],
  { model_names: names, model_ids: ids }: Members,
): readonly Stored[] {
  const byId = ids != null && ids.length > 0;
  const named = byId ? ids : (names ?? []);
  if (named.length === 0) {
    throw invalidParam(
      "model_names",
      "or `model_ids` is required: a list of stored models.",
    );
  }
  const param = byId ? "model_ids" : "model_names";
  const has = (row: ModelRow, one: string) =>
    byId
      ? row.model_id === one
      : row.model_name === one && row.info["team_id"] == null;
  for (const one of named) {
    if (rows.some((row) => has(row, one))) {
      continue;
    }
    const isOfFile = gateway.config.models.some(
      (model) => (byId ? model.id : model.alias) === one,
    );
    throw new CallError(
      "invalid_request",
      isOfFile
        ? `Model ${one} is defined in the configuration file: set \`model_info.access_groups\` there, then POST /config/reload; or give keys and teams a group with POST /v1/access_group.`
        : `Stored model ${one} not found. GET /model/info lists the models.`,
      { param },
    );
  }
  return rows.filter((row) => named.some((one) => has(row, one)));
}

/** Of `rows` exactly `chosen` are in the group afterwards; returns how many had to be changed. */
async function setMembers(
  { actor }: Admin,
  client: Client,
  group: string,
  rows: readonly StoredRow[],
  chosen: readonly StoredRow[],
): Promise<number> {
  let changed = 0;
  for (const before of rows) {
    const groups = accessGroupsOf(before);
    const others = groups.filter((one) => one !== group);
    const after = chosen.includes(before) ? [...others, group] : others;
    if (after.length === groups.length) {
      continue;
    }
    const [row = null] = await updateRows(
      client,
      "models",
      { model_id: before.model_id },
      {
        info: { ...before.info, access_groups: after },
        updated_by: actor.name,
      },
    );
    await auditModel(client, actor.name, {
      action: "updated",
      before,
      after: row,
    });
    changed += 1;
  }
  return changed;
}

function answerChange(
  group: string,
  { model_names: names, model_ids: ids }: Members,
  updated: number,
) {
  return {
    access_group: group,
    model_names: names ?? null,
    model_ids: ids ?? null,
    models_updated: updated,
  };
}

export const MODEL_ACCESS_GROUPS: readonly Route[] = [
  createGroup,
  listGroups,
  showGroup,
  updateGroup,
  deleteGroup,
];
