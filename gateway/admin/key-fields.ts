import { z } from "zod";
import { hashKey, isKeyHash, keyName, newKey } from "../access/keys.ts";
import { expiresAt } from "../accounting/windows.ts";
import { query, type Client, type Pool } from "../db/pool.ts";
import type { Row } from "../db/rows.ts";
import { CallError } from "../http/errors.ts";
import {
  duration,
  flag,
  limits,
  modelBudgets,
  modelRates,
  models,
  moment,
  name,
  names,
  object,
  texts,
} from "./fields.ts";
import { findOne, KEY } from "./payers.ts";
import type { Admin } from "./route.ts";

/** What every route that writes keys takes. */
export const keyFields = {
  ...limits,
  key_alias: name.nullish(),
  user_id: name.nullish(),
  team_id: name.nullish(),
  organization_id: name.nullish(),
  models: models.nullish(),
  duration: duration.nullish(),
  metadata: object.nullish(),
  aliases: texts.nullish(),
  permissions: object.nullish(),
  model_max_budget: modelBudgets.nullish(),
  model_rpm_limit: modelRates.nullish(),
  model_tpm_limit: modelRates.nullish(),
  tags: names.nullish(),
  blocked: flag.nullish(),
  allowed_routes: z.array(name).nullish(),
  key_type: z.enum(["llm_api", "management", "read_only", "default"]).nullish(),
  temp_budget_increase: z.number().min(0).nullish(),
  temp_budget_expiry: moment.nullish(),
} as const;

/** A key that the caller chose. */
export const chosenKey = z
  .string()
  .startsWith("sk-", "a key must begin with `sk-`")
  .min(20, "a key must have at least 20 characters")
  .max(256, "a key may have at most 256 characters")
  .regex(
    /^[\x21-\x7e]+$/,
    "a key may only have characters of ASCII, no spaces",
  );

export type KeyFields = z.output<z.ZodObject<typeof keyFields>>;

/** The columns that fields of a request set. */
export function keyColumns(
  { duration: life, ...fields }: KeyFields,
  now: number,
): Row {
  if (
    (fields.temp_budget_increase == null) !==
    (fields.temp_budget_expiry == null)
  )
    throw new CallError(
      "invalid_request",
      "`temp_budget_increase` and `temp_budget_expiry` go together: send both, or neither.",
      { param: "temp_budget_expiry" },
    );
  if (life === undefined) return fields;
  const expires = life === null ? null : expiresAt(life, now);
  return { ...fields, expires: expires === null ? null : new Date(expires) };
}

/** A new secret with the columns that stand for it; only its hash is stored. */
export function newSecret(chosen: string | null | undefined): {
  readonly key: string;
  readonly columns: { readonly token: string; readonly key_name: string };
} {
  const key = chosen ?? newKey();
  return { key, columns: { token: hashKey(key), key_name: keyName(key) } };
}

/** The hash that an argument names: a key itself or its hash. */
export function tokenOf(keyOrHash: string): string {
  return isKeyHash(keyOrHash) ? keyOrHash : hashKey(keyOrHash);
}

/** The key that an argument names; throws 404, 403 when it is out of reach. */
export async function reachableKey(
  admin: Admin,
  from: Pool | Client,
  keyOrHash: string,
): Promise<Row> {
  const row = await findKey(from, keyOrHash);
  admin.refuse(await keyFacts(from, row));
  return row;
}

async function findKey(from: Pool | Client, keyOrHash: string): Promise<Row> {
  const token = tokenOf(keyOrHash);
  try {
    return await findOne(from, KEY, { token });
  } catch (error) {
    // Never the key itself: sentences end up in logs.
    if (error instanceof CallError)
      throw new CallError(
        "unknown_object",
        `There is no key ending in ${keyOrHash.slice(-4)}. List those there are with GET /key/list.`,
        { param: "key" },
      );
    throw error;
  }
}

/** What decides whose a key is: its team's and that team's organization's, else its own organization's. */
export async function keyFacts(
  from: Pool | Client,
  row: Row,
): Promise<{
  readonly what: string;
  readonly token: string;
  readonly userId: string | null;
  readonly teamId: string | null;
  readonly organizationId: string | null;
}> {
  const teamId = (row["team_id"] as string | null | undefined) ?? null;
  let organizationId = row["organization_id"] as string | null | undefined;
  if (teamId !== null) {
    const [team] = await query<{ organization_id: string | null }>(
      from,
      "SELECT organization_id FROM teams WHERE team_id = $1",
      [teamId],
    );
    organizationId = team?.organization_id;
  }
  return {
    what: `key ${String(row["key_name"])}`,
    token: String(row["token"]),
    userId: (row["user_id"] as string | null | undefined) ?? null,
    teamId,
    organizationId: organizationId ?? null,
  };
}

/** What only somebody with all rights may give a key: it frees its holder from rules that others set. */
export function refuseSpecialRights(admin: Admin, fields: Row): void {
  if (admin.reachesAll) return;
  if (admin.actor.restricted && admin.rule.reach[admin.actor.role] === "own")
    throw new CallError(
      "permission_denied",
      "This key has limits of its own, so it may not make or change keys: use one without, or ask an admin.",
    );
  const organization = fields["organization_id"] as string | null | undefined;
  if (organization != null && !admin.actor.memberOf.has(organization))
    throw new CallError(
      "permission_denied",
      `This key may not let organization ${organization} pay: only its members may.`,
      { param: "organization_id" },
    );
  const metadata = fields["metadata"] as Row | null | undefined;
  if (metadata?.["allow_client_mock_response"] !== undefined)
    throw new CallError(
      "permission_denied",
      "Only a proxy_admin may set metadata.allow_client_mock_response.",
      { param: "metadata" },
    );
}
