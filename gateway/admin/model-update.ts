import { z } from "zod";
import { present } from "../../core/json.ts";
import { transaction } from "../database/pool.ts";
import { updateRows } from "../database/rows.ts";
import { invalidParam } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { openParams, type ModelRow } from "../routing/stored-models.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { rejectUnknownGuardrails } from "./guardrail-names.ts";
import { name, names } from "./kinds/values.ts";
import {
  denyCredential,
  denyModelName,
  holdTeam,
  rejectUnused,
  requireModelReach,
  requireNewSecrets,
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
import { modelRow } from "./model-views.ts";

const changedFields = z.object({
  ...paramFields,
  model_name: name.nullish(),
  model_info: infoFields.nullish(),
});

const updateModel = adminRoute(
  "POST /model/update",
  {
    summary: "Update a stored model; null resets a parameter.",
    input: changedFields.extend({
      model_id: name.nullish(),
      // As LiteLLM's Python client names it.
      id: name.nullish(),
    }),
    answer: modelRow,
  },
  async (admin, given) => {
    rejectUnlessStored(admin);
    const modelId = given.model_id ?? given.id ?? given.model_info?.id;
    if (modelId == null) {
      throw invalidParam(
        "model_info.id",
        "is required: the model to update. GET /model/info lists the models.",
      );
    }
    const { id: _, ...changes } = given;
    return applyChanges(admin, modelId, changes);
  },
);

const patchModel = adminRoute(
  "PATCH /model/:model_id/update",
  {
    summary:
      "Update the stored model in the path; null, or a name in `litellm_params_to_remove`, resets a parameter.",
    input: changedFields.extend({
      model_id: name,
      litellm_params_to_remove: names.nullish(),
    }),
    answer: modelRow,
  },
  async (admin, { model_id: modelId, ...given }) => {
    rejectUnlessStored(admin);
    const { litellm_params_to_remove: removed, ...changes } = given;
    if (removed == null) {
      return applyChanges(admin, modelId, changes);
    }
    const nulls = Object.fromEntries(removed.map((param) => [param, null]));
    const spelling = spellingOf(changes);
    return applyChanges(admin, modelId, {
      ...changes,
      [spelling]: { ...changes[spelling], ...nulls },
    });
  },
);

/** Changes a stored model and serves it; returns it as answers show it. */
async function applyChanges(
  admin: Admin,
  modelId: string,
  given: z.output<typeof changedFields>,
) {
  rejectModelOfFile(admin, modelId);
  const { id: _, ...free } = given.model_info ?? {};
  const spelling = spellingOf(given);
  const changes = given.provider_params ?? given.litellm_params ?? {};
  rejectUnused(changes, spelling, free);
  rejectUnknownGuardrails(
    admin,
    changes["guardrails"],
    `${spelling}.guardrails`,
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
    const stored = paramsToChange(admin, before, changes);
    denyCredential(admin, stored, changes, spelling);
    const { info } = before;
    const change = { stored, changes, info, infoChanges: free };
    requireNewSecrets(admin, change, spelling);
    const requested = await validRow(admin, client, {
      id: modelId,
      name: modelName,
      params: { ...stored, ...changes },
      spelling,
      info: withAddressMark(admin, withPublicName(merged, modelName), change),
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
    await auditModel(client, admin.actor.name, {
      action: "updated",
      before,
      after,
    });
    return after;
  });
  await admin.gateway.reloadModels();
  return storedModelAnswer(row as unknown as ModelRow);
}

/** The stored parameters; throws 400 where the provider key among them cannot be decrypted and is not replaced. */
function paramsToChange(
  { gateway }: Admin,
  before: ModelRow,
  changes: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const opened = openParams(before, gateway.config.general);
  if (opened === null && changes["api_key"] == null) {
    throw invalidParam(
      "provider_params.api_key",
      "is required: the stored one was encrypted with a key that this gateway does not have.",
    );
  }
  return opened?.params ?? before.params;
}

function nameAfter(
  before: ModelRow,
  modelName: string | null | undefined,
  { team_public_model_name: publicName }: z.output<typeof infoFields>,
): string {
  return modelName != null && modelName !== before.model_name
    ? modelName
    : (publicName ?? before.model_name);
}

export const MODEL_UPDATES: readonly Route[] = [updateModel, patchModel];
