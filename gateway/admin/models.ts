import { z } from "zod";
import { query, transaction, type Client } from "../database/pool.ts";
import {
  deleteRows,
  insertRow,
  updateRows,
  type Row,
} from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import {
  openParams,
  rowOfModel,
  SECRET_PARAMS,
  type ModelRow,
} from "../routing/stored-models.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { audit } from "./audit.ts";
import { rejectUnknownGuardrails } from "./guardrail-names.ts";
import { out } from "./kinds/out.ts";
import { name, object } from "./kinds/values.ts";
import {
  denyModelName,
  holdTeam,
  rejectUnused,
  requireModelReach,
  requireNewSecrets,
  requireOwnKey,
  teamIn,
  type RequestedModel,
} from "./model-access.ts";
import { modelAnswer, modelRow } from "./model-views.ts";

const params = z.looseObject({}, "must be an object of parameters");
const info = z.looseObject({
  id: name.nullish(),
  team_id: name.nullish(),
  team_public_model_name: name.nullish(),
});

const newModel = adminRoute(
  "POST /model/new",
  {
    summary:
      "Add a model to those of the configuration file. Every instance serves it within a second. With `model_info.team_id` only that team's keys see and call it.",
    input: z.object({
      model_name: name,
      litellm_params: params.nullish(),
      provider_params: params.nullish(),
      model_info: info.nullish(),
    }),
    answer: modelRow,
  },
  async (admin, given) => {
    rejectUnlessStored(admin);
    const { id, ...free } = given.model_info ?? {};
    const modelId = id ?? crypto.randomUUID();
    rejectModelOfFile(admin, modelId);
    const teamId = teamIn(free);
    await requireModelReach(admin, admin.pool, teamId);
    await denyModelName(admin, admin.pool, teamId, given.model_name);
    const params = given.provider_params ?? given.litellm_params ?? {};
    rejectUnused(params, spellingOf(given), free);
    rejectUnknownGuardrails(
      admin,
      params["guardrails"],
      `${spellingOf(given)}.guardrails`,
    );
    const requested = validRow(admin, {
      id: modelId,
      name: given.model_name,
      params,
      spelling: spellingOf(given),
      info: withPublicName(present(free), given.model_name),
    });
    const row = await transaction(admin.pool, async (client) => {
      await holdTeam(client, teamId);
      const created = await insertRow(client, "models", {
        ...requested,
        created_by: admin.actor.name,
        updated_by: admin.actor.name,
      });
      await auditModel(client, admin.actor.name, "created", null, created);
      return created;
    });
    await admin.gateway.reloadModels();
    return storedModelAnswer(row as unknown as ModelRow);
  },
);

const updateModel = adminRoute(
  "POST /model/update",
  {
    summary: "Update a stored model; null resets a parameter.",
    input: z.object({
      model_id: name.nullish(),
      model_name: name.nullish(),
      litellm_params: object.nullish(),
      provider_params: object.nullish(),
      model_info: info.nullish(),
    }),
    answer: modelRow,
  },
  async (admin, given) => {
    rejectUnlessStored(admin);
    const { id: inInfo, ...free } = given.model_info ?? {};
    const modelId = given.model_id ?? inInfo;
    if (modelId == null) {
      throw new CallError(
        "invalid_request",
        "`model_info.id` is required: the model to update. GET /model/info lists the models.",
        { param: "model_info.id" },
      );
    }
    rejectModelOfFile(admin, modelId);
    const changes = given.provider_params ?? given.litellm_params ?? {};
    rejectUnused(changes, spellingOf(given), free);
    rejectUnknownGuardrails(
      admin,
      changes["guardrails"],
      `${spellingOf(given)}.guardrails`,
    );
    const row = await transaction(admin.pool, async (client) => {
      const before = await lockModel(client, modelId);
      await requireReachOfStored(admin, client, before);
      const merged = present({ ...before.info, ...free });
      const modelName = nameAfter(before, given.model_name, free);
      const teamId = teamIn(merged);
      if (teamId !== teamIn(before.info)) {
        await requireModelReach(admin, client, teamId);
        await holdTeam(client, teamId);
      }
      await denyModelName(admin, client, teamId, modelName);
      const opened = openParams(before, admin.gateway.config.general);
      if (opened === null && changes["api_key"] == null) {
        throw new CallError(
          "invalid_request",
          "`provider_params.api_key` is required: the stored one was encrypted with a key that this gateway does not have.",
          { param: "provider_params.api_key" },
        );
      }
      const stored = opened?.params ?? before.params;
      requireNewSecrets(admin, stored, changes, spellingOf(given));
      const requested = validRow(admin, {
        id: modelId,
        name: modelName,
        params: { ...stored, ...changes },
        spelling: spellingOf(given),
        info: withPublicName(merged, modelName),
      });
      const [after = null] = await updateRows(
        client,
        "models",
        { model_id: modelId },
        {
          ...requested,
          sealed: requested.sealed,
          updated_by: admin.actor.name,
        },
      );
      await auditModel(client, admin.actor.name, "updated", before, after);
      return after;
    });
    await admin.gateway.reloadModels();
    return storedModelAnswer(row as unknown as ModelRow);
  },
);

const deleteModel = adminRoute(
  "POST /model/delete",
  {
    summary: "Delete a stored model.",
    input: z.object({ id: name }),
    answer: z.object({ id: out.text, message: out.text }),
  },
  async (admin, { id }) => {
    rejectUnlessStored(admin);
    rejectModelOfFile(admin, id);
    await transaction(admin.pool, async (client) => {
      const before = await lockModel(client, id);
      await requireReachOfStored(admin, client, before);
      await deleteRows(client, "models", { model_id: id });
      await auditModel(client, admin.actor.name, "deleted", before, null);
    });
    await admin.gateway.reloadModels();
    return { id, message: `Model ${id} deleted.` };
  },
);

/** The model of a team whose row remains after the team is for a proxy_admin. */
async function requireReachOfStored(
  admin: Admin,
  client: Client,
  { info: stored }: ModelRow,
): Promise<void> {
  if (!admin.reachesAll) {
    await requireModelReach(admin, client, teamIn(stored));
  }
}

/** The public name of a team's model is its name; clients send the previous one back with a new name. */
function withPublicName(
  fields: Readonly<Record<string, unknown>>,
  modelName: string,
): Readonly<Record<string, unknown>> {
  const { team_public_model_name: _, ...rest } = fields;
  return teamIn(rest) === null
    ? rest
    : { ...rest, team_public_model_name: modelName };
}

function nameAfter(
  before: ModelRow,
  modelName: string | null | undefined,
  { team_public_model_name: publicName }: z.output<typeof info>,
): string {
  return modelName != null && modelName !== before.model_name
    ? modelName
    : (publicName ?? before.model_name);
}

function spellingOf(given: { readonly litellm_params?: unknown }) {
  return given.litellm_params == null ? "provider_params" : "litellm_params";
}

/** The columns of a valid model; throws 400 that lists its problems. */
function validRow(admin: Admin, requested: RequestedModel): ModelRow {
  const { gateway } = admin;
  const read = rowOfModel(requested, gateway.config.general, gateway.env);
  if (read.ok) {
    requireOwnKey(admin, requested, read.deployment);
    return read.row;
  }
  const problems = read.problems.map(({ path, message }) => ({
    path: path.replace(/^provider_params/, requested.spelling),
    message,
  }));
  throw new CallError(
    "invalid_request",
    `The model is invalid: ${problems.map(({ path, message }) => `\`${path}\` ${message}`).join("; ")}.`,
    problems[0] === undefined ? {} : { param: problems[0].path },
  );
}

function present(fields: Readonly<Record<string, unknown>>) {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value != null),
  );
}

function storedModelAnswer(row: ModelRow) {
  return modelAnswer(row.model_id, row.model_name, row.params, row.info, true);
}

function rejectUnlessStored({ gateway }: Admin): void {
  if (gateway.config.general.storeModelInDb) {
    return;
  }
  throw new CallError(
    "invalid_request",
    "Models can only be changed in the configuration file: `general_settings.store_model_in_db` is false.",
  );
}

function rejectModelOfFile({ gateway }: Admin, id: string): void {
  if (gateway.config.models.every((model) => model.id !== id)) {
    return;
  }
  throw new CallError(
    "invalid_request",
    `Model ${id} is defined in the configuration file: change it there, then POST /config/reload.`,
    { param: "model_info.id" },
  );
}

async function lockModel(client: Client, id: string): Promise<ModelRow> {
  const [row] = await query<ModelRow & Record<string, unknown>>(
    client,
    "SELECT * FROM models WHERE model_id = $1 FOR UPDATE",
    [id],
  );
  if (row === undefined) {
    throw new CallError(
      "unknown_object",
      `Stored model ${id} not found. GET /model/info lists the models.`,
      { param: "id" },
    );
  }
  return row;
}

/** Adds an entry about a model to the audit log, without its secrets. */
export async function auditModel(
  client: Client,
  actor: string,
  action: "created" | "updated" | "deleted",
  before: Row | ModelRow | null,
  after: Row | ModelRow | null,
): Promise<void> {
  const open = (row: Row | ModelRow | null) => {
    if (row === null) {
      return null;
    }
    const { sealed, ...rest } = row as ModelRow;
    return { ...rest, ...(sealed === null ? {} : { secrets: SECRET_PARAMS }) };
  };
  const id = ((after ?? before) as ModelRow | null)?.model_id ?? "";
  await audit(client, actor, action, "model", id, open(before), open(after));
}

/** Deletes the models of a team, in the caller's transaction; returns how many there were. */
export async function deleteTeamModels(
  { actor }: Admin,
  client: Client,
  teamId: string,
): Promise<number> {
  const rows = await query<ModelRow & Row>(
    client,
    "DELETE FROM models WHERE info ->> 'team_id' = $1 RETURNING *",
    [teamId],
  );
  for (const row of rows) {
    await auditModel(client, actor.name, "deleted", row, null);
  }
  return rows.length;
}

export const MODEL_CHANGES: readonly Route[] = [
  newModel,
  updateModel,
  deleteModel,
];
