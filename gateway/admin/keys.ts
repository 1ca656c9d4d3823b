import { z } from "zod";
import { query, transaction } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { refusalOf } from "../http/conflicts.ts";
import { CallError } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { checkInput } from "./body.ts";
import {
  keyFacts,
  makeHolder,
  reachableKey,
  refuseChanges,
  refuseToSetSpend,
} from "./key-owner.ts";
import { refuseReplaced, tokenOf, tokensNow } from "./key-tokens.ts";
import { KEY, keyFields, keyRow, updatedKeyRow } from "./kinds/key.ts";
import { out } from "./kinds/out.ts";
import { name, names, spent } from "./kinds/values.ts";
import { generate, generateForService, keyColumns } from "./new-key.ts";
import { change, changeAndShow, remove, shownOne } from "./payers.ts";
import { setSpend } from "./spend.ts";

const updateFields = z.object({ ...keyFields, key: name, spend: spent });

/** Sets fields of a key; `spend` by a row of the ledger. */
async function updateKey(
  admin: Admin,
  { key, spend, ...fields }: z.output<typeof updateFields>,
): Promise<Row> {
  const before = await reachableKey(admin, admin.pool, key);
  await refuseChanges(admin, before, fields);
  if (spend != null) {
    refuseToSetSpend(admin);
  }
  const columns = keyColumns(fields, admin.now);
  const row = await transaction(admin.pool, async (client) => {
    await makeHolder(admin, client, fields);
    return change(admin, client, KEY, { token: before["token"] }, columns);
  });
  if (spend != null) {
    await setSpend(admin, KEY, row, spend);
  }
  return { ...(await shownOne(admin, KEY, row)), key };
}

const update = adminRoute(
  "POST /key/update",
  {
    summary: "Set fields of a key; null resets one.",
    input: updateFields,
    answer: updatedKeyRow,
  },
  updateKey,
);

const bulkUpdate = adminRoute(
  "POST /key/bulk_update",
  {
    summary: "Set fields of up to 500 keys; each succeeds or fails alone.",
    input: z.object({
      keys: z
        .array(z.looseObject({ key: name }))
        .min(1, "name at least one")
        .max(500, "at most 500 at once"),
    }),
    answer: z.object({
      total_requested: out.count,
      successful_updates: z.array(
        z.object({ key: out.text, key_info: keyRow }),
      ),
      failed_updates: z.array(
        z.object({ key: out.text, failed_reason: out.text }),
      ),
    }),
  },
  async (admin, { keys }) => {
    const successful: Row[] = [];
    const failed: Row[] = [];
    for (const entry of keys) {
      const token = tokenOf(entry.key);
      try {
        const { key: _, ...info } = await updateKey(
          admin,
          checkInput(updateFields, entry),
        );
        successful.push({ key: token, key_info: info });
      } catch (error) {
        const failure = refusalOf(error);
        failed.push({ key: token, failed_reason: failure.message });
      }
    }
    return {
      total_requested: keys.length,
      successful_updates: successful,
      failed_updates: failed,
    };
  },
);

const deleteKeys = adminRoute(
  "POST /key/delete",
  {
    summary:
      "Delete keys by themselves, hashes or aliases. History keeps their rows.",
    input: z.object({ keys: names.nullish(), key_aliases: names.nullish() }),
    answer: z.object({ deleted_keys: out.texts }),
  },
  async (admin, { keys, key_aliases: aliases }) => {
    if ((keys ?? aliases) == null) {
      throw new CallError(
        "invalid_request",
        "`keys` is missing: send a list of keys or hashes, or `key_aliases`.",
        { param: "keys" },
      );
    }
    return transaction(admin.pool, async (client) => {
      const found = await query<Row>(
        client,
        "SELECT * FROM keys WHERE token = ANY($1) OR key_alias = ANY($2) FOR UPDATE",
        [await tokensNow(client, keys ?? []), aliases ?? []],
      );
      if (found.length === 0) {
        throw new CallError(
          "unknown_object",
          "None of these keys exist. List those there are with GET /key/list.",
          { param: keys == null ? "key_aliases" : "keys" },
        );
      }
      for (const row of found) {
        admin.refuse(await keyFacts(client, row));
      }
      await refuseReplaced(admin, client, "keys", keys ?? []);
      for (const { token } of found) {
        await remove(admin, client, KEY, { token });
      }
      return { deleted_keys: found.map(({ token }) => token) };
    });
  },
);

function setBlocked(
  route: "POST /key/block" | "POST /key/unblock",
  blocked: boolean,
  summary: string,
): Route {
  return adminRoute(
    route,
    { summary, input: z.object({ key: name }), answer: keyRow },
    async (admin, { key }) => {
      const { token } = await reachableKey(admin, admin.pool, key);
      await refuseReplaced(admin, admin.pool, "key", [key]);
      return changeAndShow(
        admin,
        KEY,
        { token },
        { blocked },
        blocked ? "blocked" : "unblocked",
      );
    },
  );
}

const resetSpend = adminRoute(
  "POST /key/:key/reset_spend",
  {
    summary: "Set what a key has spent in its budget's window.",
    input: z.object({
      key: name,
      reset_to: z
        .number()
        .min(0, "a spend is at least 0 dollars")
        .nullish()
        .transform((dollars) => dollars ?? 0),
    }),
    answer: z.object({
      key_hash: out.text,
      spend: out.dollars,
      previous_spend: out.dollars,
      max_budget: out.dollars.nullable(),
      budget_reset_at: out.moment.nullable(),
    }),
  },
  async (admin, { key, reset_to: target }) => {
    const row = await reachableKey(admin, admin.pool, key);
    const before = await shownOne(admin, KEY, row);
    const previous = await setSpend(admin, KEY, row, target);
    return {
      key_hash: row["token"],
      spend: target,
      previous_spend: previous,
      max_budget: row["max_budget"],
      budget_reset_at: before["budget_reset_at"],
    };
  },
);

export const KEY_CHANGES: readonly Route[] = [
  generate,
  generateForService,
  update,
  bulkUpdate,
  deleteKeys,
  setBlocked(
    "POST /key/block",
    true,
    "Block a key: it is refused at once, on every instance.",
  ),
  setBlocked("POST /key/unblock", false, "Let a blocked key work again."),
  resetSpend,
];
