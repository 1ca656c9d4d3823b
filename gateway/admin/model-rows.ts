import { z } from "zod";
import { query, type Client } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import {
  credentialOf,
  holdCredential,
  openValues,
  type CredentialValues,
} from "../routing/credentials.ts";
import {
  rowOfModel,
  SECRET_PARAMS,
  type ModelRow,
} from "../routing/stored-models.ts";
import type { Admin } from "./admin-route.ts";
import { audit, type AuditAction } from "./audit.ts";
import { requireSendable } from "./credential-values.ts";
import { name, object, reference } from "./kinds/values.ts";
import {
  requireModelReach,
  requireOwnKey,
  requirePublicAddress,
  teamIn,
  type RequestedModel,
} from "./model-access.ts";
import { modelAnswer, unknownModel } from "./model-views.ts";

/** `model_info` of a request. */
export const infoFields = z.looseObject({
  id: name.nullish(),
  team_id: reference.nullish(),
  team_public_model_name: name.nullish(),
});

/** The parameters of a model in a request, under either name. */
export const paramFields = {
  litellm_params: object.nullish(),
  provider_params: object.nullish(),
} as const;

export function spellingOf(given: {
  readonly litellm_params?: unknown;
}): RequestedModel["spelling"] {
  return given.litellm_params == null ? "provider_params" : "litellm_params";
}

/** The public name of a team's model is its name; clients send the previous one back with a new name. */
export function withPublicName(
  fields: Readonly<Record<string, unknown>>,
  modelName: string,
): Readonly<Record<string, unknown>> {
  const { team_public_model_name: _, ...rest } = fields;
  return teamIn(rest) === null
    ? rest
    : { ...rest, team_public_model_name: modelName };
}

/** The columns of a valid model, whose credential stays until the transaction has ended; throws 400 that lists its problems. */
export async function validRow(
  admin: Admin,
  client: Client,
  requested: RequestedModel,
): Promise<ModelRow> {
  const { gateway } = admin;
  requireSendable(requested.params["api_key"], `${requested.spelling}.api_key`);
  const credential = await credentialFor(admin, client, requested);
  const read = rowOfModel(
    requested,
    gateway.config.general,
    gateway.env,
    credential,
  );
  if (read.ok) {
    requireOwnKey(admin, requested, read.deployment);
    requirePublicAddress(admin, requested, read.deployment);
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

/** The values of the credential that a model names. */
async function credentialFor(
  { gateway }: Admin,
  client: Client,
  { params, spelling }: RequestedModel,
): Promise<CredentialValues> {
  const named = credentialOf(params);
  if (named === null) {
    return {};
  }
  const param = `${spelling}.litellm_credential_name`;
  const row = await holdCredential(client, named, "FOR SHARE");
  if (row === undefined) {
    throw new CallError(
      "invalid_request",
      `The credential ${named} does not exist. Create it with POST /credentials; GET /credentials lists them.`,
      { param },
    );
  }
  const opened = openValues(row, gateway.config.general);
  if (opened === null) {
    throw new CallError(
      "invalid_request",
      `The credential ${named} was encrypted with a key that this gateway does not have: send its values again with PATCH /credentials/${encodeURIComponent(named)}.`,
      { param },
    );
  }
  return opened.values;
}

export function storedModelAnswer(row: ModelRow) {
  return modelAnswer(row.model_id, row.model_name, row.params, row.info, true);
}

/** Throws 400 where models are kept in the configuration file only. */
export function rejectUnlessStored({ gateway }: Admin): void {
  if (gateway.config.general.storeModelInDb) {
    return;
  }
  throw new CallError(
    "invalid_request",
    "Models can only be changed in the configuration file: `general_settings.store_model_in_db` is false.",
  );
}

/** Throws 400 for a model of the configuration file. */
export function rejectModelOfFile({ gateway }: Admin, id: string): void {
  if (gateway.config.models.every((model) => model.id !== id)) {
    return;
  }
  throw new CallError(
    "invalid_request",
    `Model ${id} is defined in the configuration file: change it there, then POST /config/reload.`,
    { param: "model_info.id" },
  );
}

/** The row of a stored model, locked; throws 404. */
export async function lockModel(client: Client, id: string): Promise<ModelRow> {
  const [row] = await query<ModelRow & Record<string, unknown>>(
    client,
    "SELECT * FROM models WHERE model_id = $1 FOR UPDATE",
    [id],
  );
  if (row === undefined) {
    throw unknownModel(id);
  }
  return row;
}

/** The model of a team whose row remains after the team is for a proxy_admin. */
export async function requireReachOfStored(
  admin: Admin,
  client: Client,
  { info: stored }: ModelRow,
): Promise<void> {
  if (!admin.reachesAll) {
    await requireModelReach(admin, client, teamIn(stored));
  }
}

interface ModelChange {
  readonly action: AuditAction;
  readonly before: Row | ModelRow | null;
  readonly after: Row | ModelRow | null;
}

/** Adds an entry about a model to the audit log, without its secrets. */
export async function auditModel(
  client: Client,
  actor: string,
  { action, before, after }: ModelChange,
): Promise<void> {
  const open = (row: Row | ModelRow | null) => {
    if (row === null) {
      return null;
    }
    const { sealed, ...rest } = row as ModelRow;
    return { ...rest, ...(sealed === null ? {} : { secrets: SECRET_PARAMS }) };
  };
  const id = ((after ?? before) as ModelRow | null)?.model_id ?? "";
  await audit(client, actor, {
    action,
    objectType: "model",
    objectId: id,
    before: open(before),
    after: open(after),
  });
}
