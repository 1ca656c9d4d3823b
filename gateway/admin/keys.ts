import { z } from "zod";
import { query, transaction } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import {
  createHolder,
  denyChanges,
  denySettingSpend,
  denyTokenKey,
  keysWithinReach,
  reachableKey,
  requireKeyReach,
} from "./key-owner.ts";
import { rejectReplaced, tokensNow } from "./key-tokens.ts";
import { KEY, keyFields, keyRow, updatedKeyRow } from "./kinds/key.ts";
import { out } from "./kinds/out.ts";
import { dollars, name, names, spent } from "./kinds/values.ts";
import { generate, generateForService, keyColumns } from "./new-key.ts";
import { answerRow, change, changeAndAnswer, remove } from "./payers.ts";
import { changeWithSpend, lowerSpend } from "./spend.ts";

export const updateFields = z.object({ ...keyFields, key: name, spend: spent });

/** Sets fields of a key; `spend` is set by a row of the ledger. */
export async function updateKey(
  admin: Admin,
  { key, spend, ...fields }: z.output<typeof updateFields>,
): Promise<Row> {
  const before = await reachableKey(admin, admin.pool, key);
  await denyChanges(admin, before, fields);
  if (spend != null) {
    denySettingSpend(admin);
  }
  const columns = keyColumns(fields, admin.now, before);
  const row = await changeWithSpend(admin, KEY, spend, async (client) => {
    await createHolder(admin, client, fields);
    return change(admin, client, KEY, { token: before["token"] }, columns);
  });
  return { ...(await answerRow(admin, KEY, row)), key };
}

const update = adminRoute(
  "POST /key/update",
  {
    summary:
      "Update a key, named by its secret, its hash or, without `key`, by its alias; null resets a field.",
    input: updateFields.extend({ key: name.nullish() }),
    answer: updatedKeyRow,
  },
  async (admin, { key, key_alias: alias, ...fields }) =>
    updateKey(
      admin,
      key == null
        ? { ...fields, key: await tokenOfAlias(admin, alias) }
        : { ...fields, key, key_alias: alias },
    ),
);

/** Throws 404 also for the alias of a key out of reach: a guessed name must not show that a key exists, or its ending. */
async function tokenOfAlias(
  admin: Admin,
  alias: string | null | undefined,
): Promise<string> {
  if (alias == null) {
    throw invalidParam(
      "key",
      "is required: a key or its hash; or send the `key_alias` that it has.",
    );
  }
  const rows = await query<Row>(
    admin.pool,
    "SELECT * FROM keys WHERE key_alias = $1",
    [alias],
  );
  const [row] = await keysWithinReach(admin, rows);
  if (row === undefined) {
    throw new CallError(
      "unknown_object",
      `Key with the alias ${alias} not found. GET /key/list lists the keys.`,
      { param: "key_alias" },
    );
  }
  return String(row["token"]);
}

const deleteKeys = adminRoute(
  "POST /key/delete",
  {
    summary:
      "Delete keys by secret, hash or alias, and answer them as they were sent. Their rows are kept in the history.",
    input: z.object({ keys: names.nullish(), key_aliases: names.nullish() }),
    answer: z.object({ deleted_keys: out.texts }),
  },
  async (admin, { keys, key_aliases: aliases }) => {
    if ((keys ?? aliases) == null) {
      throw invalidParam(
        "keys",
        "is required: a list of keys or hashes; or send `key_aliases`.",
      );
    }
    return transaction(admin.pool, async (client) => {
      const named = await tokensNow(client, keys ?? []);
      const rows = await query<Row>(
        client,
        "SELECT * FROM keys WHERE token = ANY($1) OR key_alias = ANY($2) FOR UPDATE",
        [named, aliases ?? []],
      );
      const reached = new Set(await keysWithinReach(admin, rows, client));
      const found = rows.filter(
        (row) => named.includes(String(row["token"])) || reached.has(row),
      );
      if (found.length === 0) {
        throw new CallError(
          "unknown_object",
          "None of these keys exist. GET /key/list lists the keys.",
          { param: keys == null ? "key_aliases" : "keys" },
        );
      }
      for (const row of found) {
        await requireKeyReach(admin, client, row);
        denyTokenKey(admin, row);
      }
      await rejectReplaced(admin, client, "keys", keys ?? []);
      for (const { token } of found) {
        await remove(admin, client, KEY, { token });
      }
      const tokens = new Set(found.map(({ token }) => token));
      const names = new Set(found.map((row) => row["key_alias"]));
      return {
        deleted_keys: [
          ...(keys ?? []).filter((_, at) => tokens.has(named[at])),
          ...(aliases ?? []).filter((alias) => names.has(alias)),
        ],
      };
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
      await rejectReplaced(admin, admin.pool, "key", [key]);
      return changeAndAnswer(
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
    summary: "Lower the spend of a key in its budget's window.",
    input: z.object({
      key: name,
      reset_to: dollars,
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
    const before = await answerRow(admin, KEY, row);
    const previous = await lowerSpend(admin, KEY, target, row);
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
  deleteKeys,
  setBlocked(
    "POST /key/block",
    true,
    "Block a key: its calls are denied at once, on every instance.",
  ),
  setBlocked("POST /key/unblock", false, "Unblock a key."),
  resetSpend,
];
