import { z } from "zod";
import { present } from "../../core/json.ts";
import { query, transaction, type Client } from "../database/pool.ts";
import { deleteRows, insertRow, type Row } from "../database/rows.ts";
import type { Route } from "../http/route.ts";
import type { ModelRow } from "../routing/stored-models.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { rejectUnknownGuardrails } from "./guardrail-names.ts";
import { out } from "./kinds/out.ts";
import { name } from "./kinds/values.ts";
import {
  denyCredential,
  denyModelName,
  holdTeam,
  rejectUnused,
  requireModelReach,
  teamIn,
  withAddressMark,
} from "./model-access.ts";
import {
  auditModel,
  infoFields,
  lockModel,
  paramFields,
  rejectModelOfFile,
  rejectUnlessStored,
  requireReachOfStored,
  spellingOf,
  storedModelAnswer,
  validRow,
  withPublicName,
} from "./model-rows.ts";
import { MODEL_UPDATES } from "./model-update.ts";
import { modelRow } from "./model-views.ts";

const newModel = adminRoute(
  "POST /model/new",
  {
    summary:
      "Add a model to those of the configuration file. Every instance serves it within a second. With `model_info.team_id` only that team's keys see and call it.",
    input: z.object({
      ...paramFields,
      model_name: name,
      model_info: infoFields.nullish(),
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
    const spelling = spellingOf(given);
    rejectUnused(params, spelling, free);
    rejectUnknownGuardrails(
      admin,
      params["guardrails"],
      `${spelling}.guardrails`,
    );
    denyCredential(admin, {}, params, spelling);
    const row = await transaction(admin.pool, async (client) => {
      await holdTeam(client, teamId);
      const requested = await validRow(admin, client, {
        id: modelId,
        name: given.model_name,
        params,
        spelling,
        info: withAddressMark(
          admin,
          withPublicName(present(free), given.model_name),
          { stored: {}, changes: params, info: {} },
        ),
      });
      const created = await insertRow(client, "models", {
        ...requested,
        created_by: admin.actor.name,
        updated_by: admin.actor.name,
      });
      await auditModel(client, admin.actor.name, {
        action: "created",
        before: null,
        after: created,
      });
      return created;
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
      await deleteRows(client, "blocked_models", { model_id: id });
      await auditModel(client, admin.actor.name, {
        action: "deleted",
        before,
        after: null,
      });
    });
    await admin.gateway.reloadModels();
    return { id, message: `Model ${id} deleted.` };
  },
);

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
  await query(client, "DELETE FROM blocked_models WHERE model_id = ANY($1)", [
    rows.map(({ model_id: id }) => id),
  ]);
  for (const row of rows) {
    await auditModel(client, actor.name, {
      action: "deleted",
      before: row,
      after: null,
    });
  }
  return rows.length;
}

export const MODEL_CHANGES: readonly Route[] = [
  newModel,
  ...MODEL_UPDATES,
  deleteModel,
];
