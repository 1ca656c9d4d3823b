import { z } from "zod";
import { carrySpendOver } from "../database/adjustments.ts";
import { ensurePartitions } from "../database/partitions.ts";
import { query, transaction, type Client } from "../database/pool.ts";
import { insertRow, type Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import type { RouteName } from "../access/policy.ts";
import type { Route } from "../http/route.ts";
import { expiresAt } from "../ledger/budget-durations.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { audit } from "./audit.ts";
import { createHolder, denyChanges, reachableKey } from "./key-owner.ts";
import {
  chosenKey,
  KEY,
  keyFields,
  newKeyRow,
  type KeyFields,
} from "./kinds/key.ts";
import { lifetime, name } from "./kinds/values.ts";
import { answerWithSecret, keyColumns, newSecret } from "./new-key.ts";
import { change, keyEntities } from "./payers.ts";

const rotation = {
  ...keyFields,
  new_key: chosenKey.nullish(),
  grace_period: lifetime.nullish(),
};

interface Rotation {
  readonly fields: KeyFields;
  readonly newKey: string | null | undefined;
  readonly grace: string | null | undefined;
}

/**
 * Gives a key a new secret. Its row, limits and spend continue under the new hash; the old secret opens the same row until
 * the grace period ends, so that both share one budget.
 */
async function rotate(
  admin: Admin,
  key: string,
  { fields, newKey, grace }: Rotation,
): Promise<Row> {
  const old = await reachableKey(admin, admin.pool, key);
  rejectWithoutSecret(old);
  const renewsItself =
    old["token"] === admin.actor.token && Object.keys(fields).length === 0;
  if (!renewsItself) {
    await denyChanges(admin, old, fields);
  }
  const secret = newSecret(newKey);
  await admin.gateway.ledger.flush();
  await ensurePartitions(admin.pool, [
    { started_at: new Date(admin.now).toISOString() },
  ]);
  const row = await transaction(admin.pool, async (client) => {
    const renamed = await renew(admin, client, old, secret.columns);
    await carryOver(admin, client, old, renamed);
    await openByOldSecret(admin, client, old, renamed, grace);
    await createHolder(admin, client, fields);
    const changes = keyColumns(fields, admin.now, old);
    return Object.keys(changes).length === 0
      ? renamed
      : change(admin, client, KEY, { token: renamed["token"] }, changes);
  });
  return answerWithSecret(admin, { row, key: secret.key });
}

function rejectWithoutSecret({ jwt_issuer: issuer, key_alias: alias }: Row) {
  if (issuer != null) {
    throw new CallError(
      "invalid_request",
      `The key ${String(alias)} has no secret: it counts calls with tokens of ${String(issuer)}. Block it to reject them.`,
      { param: "key" },
    );
  }
}

/** The row under its new hash; history keeps it under the old one. */
async function renew(
  admin: Admin,
  client: Client,
  old: Row,
  columns: Row,
): Promise<Row> {
  const { name: actor } = admin.actor;
  await insertRow(client, "deleted_keys", { ...old, deleted_by: actor });
  const [renamed] = await query<Row>(
    client,
    `UPDATE keys SET token = $2, key_name = $3, updated_at = now(), updated_by = $4 WHERE token = $1 RETURNING *`,
    [old["token"], columns["token"], columns["key_name"], actor],
  );
  await audit(client, actor, {
    action: "rotated",
    objectType: KEY.noun,
    objectId: String(columns["token"]),
    before: old,
    after: renamed ?? null,
  });
  // The trigger announces the new hash only.
  await query(client, "SELECT pg_notify('hearth_changes', 'keys:' || $1)", [
    old["token"],
  ]);
  return renamed ?? old;
}

/** The new hash starts with the spend of the old one, in the budget's window and in total; so do the budgets of its models. */
async function carryOver(
  { windowing, now }: Admin,
  client: Client,
  old: Row,
  renamed: Row,
): Promise<void> {
  const oldToken = String(old["token"]);
  const newToken = String(renamed["token"]);
  const entities = await keyEntities(client, "token", newToken);
  await carrySpendOver(
    client,
    entities.map((to) => ({ from: to.replace(newToken, oldToken), to })),
    {
      reason: { carried_over_from: oldToken },
      since: (old["created_at"] as Date).getTime(),
      windowing,
      now,
    },
  );
}

/**
 * The row is kept permanently: the ledger names the old hash. The old secret works until its grace period ends; without
 * one, all previous secrets of the key end at once.
 */
async function openByOldSecret(
  admin: Admin,
  client: Client,
  old: Row,
  renamed: Row,
  grace: string | null | undefined,
): Promise<void> {
  const { token } = renamed;
  const until = grace == null ? null : expiresAt(grace, admin.now);
  const end = new Date(until ?? admin.now);
  await insertRow(client, "rotated_keys", {
    old_token: old["token"],
    token,
    valid_until: end,
  });
  if (until === null) {
    await query(
      client,
      "UPDATE rotated_keys SET valid_until = $2 WHERE token = $1 AND valid_until > $2",
      [token, end],
    );
  }
}

/** The key is named in the body or in the path. */
function regenerate(route: RouteName, summary: string): Route {
  return adminRoute(
    route,
    { summary, input: z.object({ ...rotation, key: name }), answer: newKeyRow },
    (admin, { key, new_key: newKey, grace_period: grace, ...fields }) =>
      rotate(admin, key, { fields, newKey, grace }),
  );
}

export const KEY_ROTATION: readonly Route[] = [
  regenerate(
    "POST /key/regenerate",
    "Give a key a new secret. The old one stops working at once, or after grace_period.",
  ),
  regenerate(
    "POST /key/:key/regenerate",
    "Give the key in the path a new secret.",
  ),
];
