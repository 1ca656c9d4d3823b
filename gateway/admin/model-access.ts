import { isIP } from "node:net";
import {
  isPrivateHost,
  isPublicAddress,
} from "../../core/network-addresses.ts";
import { nearest } from "../../core/nearest.ts";
import { referencedVariable } from "../../core/config/references.ts";
import { unusedInfo } from "../config/deployments.ts";
import { alternativeOf } from "../config/litellm-settings.ts";
import { modelInfo, providerParams } from "../config/schema.ts";
import { isForeign } from "../config/target.ts";
import type { Deployment } from "../config/types.ts";
import { findRows } from "../database/rows.ts";
import type { Client, Pool } from "../database/pool.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import { credentialOf } from "../routing/credentials.ts";
import { SECRET_PARAMS, unusedParams } from "../routing/stored-models.ts";
import type { Admin } from "./admin-route.ts";
import { TEAM } from "./kinds/team.ts";
import { unknown } from "./payers.ts";
import { denyModels, reachableTeam } from "./team-access.ts";

/** A model as a request describes it. */
export interface RequestedModel {
  readonly id: string;
  readonly name: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** The name under which the parameters were sent. */
  readonly spelling: "provider_params" | "litellm_params";
  readonly info: Readonly<Record<string, unknown>>;
}

/** The team that alone may call a model; null: it is for all. */
export function teamIn(info: Readonly<Record<string, unknown>>): string | null {
  const { team_id: teamId } = info;
  return typeof teamId === "string" ? teamId : null;
}

/** Throws 403 unless the caller may add, change and delete models of a team (null: models for all), 404 for an unknown team. */
export async function requireModelReach(
  admin: Admin,
  from: Pool | Client,
  teamId: string | null,
): Promise<void> {
  if (teamId !== null) {
    await reachableTeam(admin, from, teamId);
  } else if (!admin.reachesAll) {
    throw new CallError(
      "permission_denied",
      "Only a proxy_admin may add, change or delete models for all callers. A team's admin sets `model_info.team_id` to add a model for its team.",
      { param: "model_info.team_id" },
    );
  }
}

/** Throws 403 for a name that the organization of the model's team does not allow. */
export async function denyModelName(
  admin: Admin,
  from: Pool | Client,
  teamId: string | null,
  name: string,
): Promise<void> {
  if (teamId !== null && !admin.reachesAll) {
    const team = await reachableTeam(admin, from, teamId);
    await denyModels(admin, { ...team, models: [name] }, from);
  }
}

/** Keeps a model's team until the transaction has ended; throws 404 if it was deleted. */
export async function holdTeam(
  client: Client,
  teamId: string | null,
): Promise<void> {
  if (teamId === null) {
    return;
  }
  const id = { team_id: teamId };
  const [team] = await findRows(client, TEAM.table, id, "FOR SHARE");
  if (team === undefined) {
    throw unknown(TEAM, teamId);
  }
}

/** Throws 400 for a team admin's model that would be called with a provider key of the gateway. */
export function requireOwnKey(
  { reachesAll }: Admin,
  { params, spelling }: RequestedModel,
  { apiKey, pending }: Deployment,
): void {
  const { api_key: key } = params;
  const isOwn =
    (typeof key === "string" && referencedVariable(key) === null) ||
    // Given by a proxy_admin: see denyCredential.
    credentialOf(params) !== null;
  if (reachesAll || isOwn || (apiKey === null && pending === null)) {
    return;
  }
  const param = `${spelling}.api_key`;
  throw invalidParam(
    param,
    "is required: a team's admin adds models with a provider key of the team. Only a proxy_admin may use those of the gateway.",
  );
}

/** Throws 403 for a credential that the caller gives a model: all of them are the gateway's, not of a team. */
export function denyCredential(
  { reachesAll }: Admin,
  stored: Readonly<Record<string, unknown>>,
  changes: Readonly<Record<string, unknown>>,
  spelling: RequestedModel["spelling"],
): void {
  const given = credentialOf(changes);
  if (!reachesAll && given !== null && given !== credentialOf(stored)) {
    const param = `${spelling}.litellm_credential_name`;
    throw new CallError(
      "permission_denied",
      `\`${param}\` is for a proxy_admin: a team's admin sends a provider key of the team in \`${spelling}.api_key\`.`,
      { param },
    );
  }
}

/** Parameters that decide to which server a model's secrets are sent. */
const ADDRESS = ["api_base", "base_url", "model", "custom_llm_provider"];

/** Parameters that decide to which servers the gateway connects. */
const CONNECTS = [...ADDRESS, "configurable_clientside_auth_params"];

/**
 * The fields of `model_info`, with the mark of a model whose address is from a team's admin: the gateway may reach servers that are
 * closed to people, such as those of its own machine or a cloud's metadata. Only a proxy_admin may set or remove the mark.
 */
export function withAddressMark(
  { reachesAll }: Admin,
  info: Readonly<Record<string, unknown>>,
  { stored, changes, info: before }: Omit<ModelChange, "infoChanges">,
): Readonly<Record<string, unknown>> {
  if (reachesAll) {
    return info;
  }
  const { public_address_only: _, ...rest } = info;
  const isMarked =
    before["public_address_only"] === true ||
    changedNames(stored, changes).some((name) => CONNECTS.includes(name));
  return isMarked ? { ...rest, public_address_only: true } : rest;
}

/** Throws 400 for a team admin's model at an address that can only be one of a private network; names are checked when they are called. */
export function requirePublicAddress(
  { reachesAll }: Admin,
  { spelling }: RequestedModel,
  { publicOnly, apiBase }: Deployment,
): void {
  if (reachesAll || !publicOnly || !URL.canParse(apiBase)) {
    return;
  }
  const { hostname } = new URL(apiBase);
  const host = hostname.replace(/^\[|\]$/g, "");
  const isPublic =
    isIP(host) === 0 ? !isPrivateHost(host) : isPublicAddress(host);
  if (!isPublic) {
    const param = `${spelling}.api_base`;
    throw invalidParam(
      param,
      `must be a public address: ${host} is not. Only a proxy_admin may add models at addresses of a private network.`,
    );
  }
}

/** Parameters and fields of `model_info` that decide what the calls of a model cost. */
function isPrice(name: string): boolean {
  return name.includes("_cost_") || name === "local" || name === "base_model";
}

/** What a change of a stored model sets, and what it had: parameters and fields of `model_info`. */
interface ModelChange {
  readonly stored: Readonly<Record<string, unknown>>;
  readonly changes: Readonly<Record<string, unknown>>;
  readonly info: Readonly<Record<string, unknown>>;
  readonly infoChanges: Readonly<Record<string, unknown>>;
}

function changedNames(
  before: ModelChange["stored"],
  changes: ModelChange["changes"],
): readonly string[] {
  return Object.keys(changes).filter(
    (name) => (changes[name] ?? null) !== (before[name] ?? null),
  );
}

/**
 * Throws 400 for a change by a team's admin that would send stored secrets, which may be of somebody else, to another server, or
 * give the calls that somebody else pays for another price: they would not count towards the budgets of the team.
 */
export function requireNewSecrets(
  { reachesAll }: Admin,
  { stored, changes, info, infoChanges }: ModelChange,
  spelling: RequestedModel["spelling"],
): void {
  const params = changedNames(stored, changes);
  const why = params.some((name) => ADDRESS.includes(name))
    ? "another address or model: the stored one is not sent there"
    : [...params, ...changedNames(info, infoChanges)].some(isPrice)
      ? "another price: the owner of the stored one pays for the calls"
      : null;
  const kept =
    credentialOf({ ...stored, ...changes }) === null
      ? SECRET_PARAMS.find(
          (param) => stored[param] !== undefined && !(param in changes),
        )
      : "litellm_credential_name";
  if (reachesAll || why === null || kept === undefined) {
    return;
  }
  const param = `${spelling}.${kept}`;
  throw invalidParam(
    param,
    `is required with ${why}. Send a new one, or ask a proxy_admin.`,
  );
}

/** Throws 400 for parameters that have no effect here: a region, a limit or a price must not be lost unnoticed. */
export function rejectUnused(
  params: Readonly<Record<string, unknown>>,
  spelling: RequestedModel["spelling"],
  info: Readonly<Record<string, unknown>>,
): void {
  const [unused] = unusedParams(params);
  // Of a provider that is not supported, the model itself is rejected.
  if (unused !== undefined && !isForeign(params)) {
    throw unsupported(spelling, unused, Object.keys(providerParams.shape));
  }
  const [field] = unusedInfo(info);
  if (field !== undefined) {
    throw unsupported("model_info", field, Object.keys(modelInfo.shape));
  }
}

function unsupported(
  section: string,
  name: string,
  known: readonly string[],
): CallError {
  const param = `${section}.${name}`;
  const instead = alternativeOf([section, name]);
  if (instead !== undefined) {
    return invalidParam(param, `is not supported: ${instead}. Leave it out.`);
  }
  const near = nearest(name, known);
  return new CallError(
    "invalid_request",
    near === undefined
      ? `\`${param}\` is not supported: leave it out. config/gateway.yaml lists the parameters of models.`
      : `\`${param}\` is not supported (did you mean \`${near}\`?).`,
    { param },
  );
}
