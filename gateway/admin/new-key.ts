import { z } from "zod";
import { hashKey, keyName, newKey } from "../access/keys.ts";
import { transaction, type Client } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import { expiresAt } from "../ledger/budget-durations.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import {
  createHolder,
  denyOwner,
  denySettingSpend,
  denySpecialRights,
  keyFacts,
  rejectOtherOrganization,
} from "./key-owner.ts";
import {
  chosenKey,
  KEY,
  keyFields,
  newKeyRow,
  type KeyFields,
} from "./kinds/key.ts";
import { TEAM } from "./kinds/team.ts";
import { name, spent } from "./kinds/values.ts";
import { answerRow, create, findOne } from "./payers.ts";
import { changeWithSpend } from "./spend.ts";

/** Creates a key in the caller's transaction, and its user if it does not exist. */
export async function insertKey(
  admin: Admin,
  client: Client,
  fields: KeyFields,
  chosen: string | null | undefined,
): Promise<{ readonly row: Row; readonly key: string }> {
  const { key, columns } = newSecret(chosen);
  await createHolder(admin, client, fields);
  const row = await create(admin, client, KEY, {
    ...keyColumns(fields, admin.now),
    ...columns,
  });
  return { row: row ?? {}, key };
}

/** The only answer that shows a key. */
export async function answerWithSecret(
  admin: Admin,
  { row, key }: { readonly row: Row; readonly key: string },
): Promise<Row> {
  return { ...(await answerRow(admin, KEY, row)), key, token_id: row["token"] };
}

/** The owner of a new key: by default the caller's user, and the team or organization of the caller's key. */
function ownedFields(
  { actor, reachesAll }: Admin,
  fields: KeyFields,
): KeyFields {
  if (reachesAll) {
    return fields;
  }
  return {
    ...actor.within,
    ...fields,
    user_id: fields.user_id ?? actor.userId,
  };
}

export const generate = adminRoute(
  "POST /key/generate",
  {
    summary: "Create a key. It is shown only once.",
    input: z.object({ ...keyFields, key: chosenKey.nullish(), spend: spent }),
    answer: newKeyRow,
  },
  async (admin, { key, spend, ...fields }) => {
    const owned = ownedFields(admin, fields);
    denySpecialRights(admin, owned);
    await denyOwner(admin, owned);
    if (spend != null && spend > 0) {
      denySettingSpend(admin);
    }
    let secret = "";
    const row = await changeWithSpend(
      admin,
      KEY,
      spend === 0 ? null : spend,
      async (client) => {
        const created = await insertKey(admin, client, owned, key);
        secret = created.key;
        return created.row;
      },
    );
    return answerWithSecret(admin, { row, key: secret });
  },
);

export const generateForService = adminRoute(
  "POST /key/service-account/generate",
  {
    summary: "Create a key that belongs to a team and not to a user.",
    input: z.object({ ...keyFields, key: chosenKey.nullish(), team_id: name }),
    answer: newKeyRow,
  },
  async (admin, { key, user_id: userId, ...fields }) => {
    if (userId != null) {
      throw invalidParam(
        "user_id",
        "must not be sent: the key of a service account belongs to its team, not to a user.",
      );
    }
    denySpecialRights(admin, fields);
    const facts = await keyFacts(admin.pool, fields);
    admin.requireReach({
      ...facts,
      what: `keys of team ${fields.team_id}`,
      userId: admin.actor.userId,
    });
    await findOne(admin.pool, TEAM, { team_id: fields.team_id });
    rejectOtherOrganization(facts, fields);
    return answerWithSecret(
      admin,
      await transaction(admin.pool, (client) =>
        insertKey(admin, client, fields, key),
      ),
    );
  },
);

/** The columns that fields of a request set; `before`: the key's row, if it exists. */
export function keyColumns(
  { duration: life, ...fields }: KeyFields,
  now: number,
  before?: Row,
): Row {
  if (
    (fields.temp_budget_increase == null) !==
    (fields.temp_budget_expiry == null)
  ) {
    throw new CallError(
      "invalid_request",
      "`temp_budget_increase` and `temp_budget_expiry` must be sent together.",
      { param: "temp_budget_expiry" },
    );
  }
  rejectPastRaise(fields, now, before);
  if (life === undefined) {
    return fields;
  }
  const expires = life === null ? null : expiresAt(life, now);
  return { ...fields, expires: expires === null ? null : new Date(expires) };
}

/** The value that a key already has may be sent back with its other fields. */
function rejectPastRaise(
  { temp_budget_expiry: until }: KeyFields,
  now: number,
  before: Row | undefined,
): void {
  const kept = before?.["temp_budget_expiry"] as Date | null | undefined;
  if (
    until != null &&
    Date.parse(until) <= now &&
    Date.parse(until) !== kept?.getTime()
  ) {
    throw invalidParam(
      "temp_budget_expiry",
      "must be in the future; send null for it and `temp_budget_increase` to end a temporary increase.",
    );
  }
}

/** A new secret and its columns; only its hash is stored. */
export function newSecret(chosen: string | null | undefined): {
  readonly key: string;
  readonly columns: { readonly token: string; readonly key_name: string };
} {
  const key = chosen ?? newKey();
  return { key, columns: { token: hashKey(key), key_name: keyName(key) } };
}
