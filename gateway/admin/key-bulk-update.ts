import { z } from "zod";
import { query } from "../database/pool.ts";
import { findRows, type Row } from "../database/rows.ts";
import { rejectionOf } from "../http/conflicts.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { checkInput } from "./body.ts";
import { tokenOf, tokensNow } from "./key-tokens.ts";
import { updateFields, updateKey } from "./keys.ts";
import { KEY, keyFields, keyRow } from "./kinds/key.ts";
import { out } from "./kinds/out.ts";
import { flag, name } from "./kinds/values.ts";
import { reachableTeam } from "./team-access.ts";

const MAX_AT_ONCE = 500;
const TOO_MANY = `must have at most ${MAX_AT_ONCE} entries`;

const outcome = z.object({
  total_requested: out.count,
  successful_updates: z.array(z.object({ key: out.text, key_info: keyRow })),
  failed_updates: z.array(z.object({ key: out.text, failed_reason: out.text })),
});

/** Updates each key on its own. `shown` is what the answer calls it, `update` returns its new row. */
async function updateEach(
  keys: readonly {
    readonly shown: string;
    readonly update: () => Promise<Row>;
  }[],
): Promise<z.output<typeof outcome>> {
  const successful: Row[] = [];
  const failed: Row[] = [];
  for (const { shown, update } of keys) {
    try {
      const { key: _, ...info } = await update();
      successful.push({ key: shown, key_info: info });
    } catch (error) {
      failed.push({ key: shown, failed_reason: rejectionOf(error).message });
    }
  }
  return {
    total_requested: keys.length,
    successful_updates: successful,
    failed_updates: failed,
  } as z.output<typeof outcome>;
}

const bulkUpdate = adminRoute(
  "POST /key/bulk_update",
  {
    summary: "Update up to 500 keys; each succeeds or fails on its own.",
    input: z.object({
      keys: z
        .array(z.looseObject({ key: name }))
        .min(1, "must have at least one entry")
        .max(MAX_AT_ONCE, TOO_MANY),
    }),
    answer: outcome,
  },
  (admin, { keys }) =>
    updateEach(
      keys.map((entry) => ({
        shown: tokenOf(entry.key),
        update: async () => updateKey(admin, checkInput(updateFields, entry)),
      })),
    ),
);

/** Neither rights nor owners: what LiteLLM lets a team set on many of its keys at once. */
const teamKeyFields = z.object({
  max_budget: keyFields.max_budget,
  soft_budget: keyFields.soft_budget,
  budget_id: keyFields.budget_id,
  budget_duration: keyFields.budget_duration,
  model_max_budget: keyFields.model_max_budget,
  tpm_limit: keyFields.tpm_limit,
  rpm_limit: keyFields.rpm_limit,
  model_tpm_limit: keyFields.model_tpm_limit,
  model_rpm_limit: keyFields.model_rpm_limit,
  max_parallel_requests: keyFields.max_parallel_requests,
  temp_budget_increase: keyFields.temp_budget_increase,
  temp_budget_expiry: keyFields.temp_budget_expiry,
  duration: keyFields.duration,
  tags: keyFields.tags,
  metadata: keyFields.metadata,
});

const updateKeysOfTeam = adminRoute(
  "POST /team/key/bulk_update",
  {
    summary:
      "Set the same limits, tags, metadata or lifetime on up to 500 keys of a team; each succeeds or fails on its own. `all_keys_in_team` means those that are neither blocked nor expired.",
    input: z.object({
      team_id: name,
      key_ids: z.array(name).max(MAX_AT_ONCE, TOO_MANY).nullish(),
      all_keys_in_team: flag.nullish(),
      update_fields: teamKeyFields,
    }),
    answer: outcome,
  },
  async (admin, { team_id: teamId, key_ids: ids, ...rest }) => {
    await reachableTeam(admin, admin.pool, teamId, `keys of team ${teamId}`);
    const { all_keys_in_team: all, update_fields: fields } = rest;
    const named = ids ?? [];
    if (named.length > 0 === (all === true)) {
      throw new CallError(
        "invalid_request",
        "Send either `key_ids`, a list of keys or hashes, or `all_keys_in_team: true`.",
        { param: "key_ids" },
      );
    }
    if (Object.keys(fields).length === 0) {
      throw invalidParam("update_fields", "must have at least one field.");
    }
    const keys =
      all === true
        ? await usableKeysOf(admin, teamId)
        : await keysByToken(admin, named);
    return updateEach(
      keys.map(({ token, shown }) => ({
        shown,
        async update() {
          const id = { token, team_id: teamId };
          const [row] = await findRows(admin.pool, KEY.table, id);
          if (row === undefined) {
            throw new CallError(
              "unknown_object",
              `Team ${teamId} has no such key. GET /key/list?team_id= lists its keys.`,
              { param: "key_ids" },
            );
          }
          return updateKey(admin, { ...fields, key: token });
        },
      })),
    );
  },
);

interface ChosenKey {
  readonly token: string;
  /** As the request named it. */
  readonly shown: string;
}

/** Each key once, under the first name that it has in the request. */
async function keysByToken(
  { pool }: Admin,
  named: readonly string[],
): Promise<readonly ChosenKey[]> {
  const tokens = await tokensNow(pool, named);
  return tokens.flatMap((token, at) =>
    tokens.indexOf(token) === at ? [{ token, shown: named[at] ?? token }] : [],
  );
}

/** Throws 404 where there are none, 400 where there are too many. */
async function usableKeysOf(
  { pool, now }: Admin,
  teamId: string,
): Promise<readonly ChosenKey[]> {
  const rows = await query<{ token: string }>(
    pool,
    `SELECT token FROM keys WHERE team_id = $1 AND NOT blocked AND (expires IS NULL OR expires > $2)
       ORDER BY token LIMIT ${MAX_AT_ONCE + 1}`,
    [teamId, new Date(now)],
  );
  if (rows.length === 0) {
    throw new CallError(
      "unknown_object",
      `Team ${teamId} has no keys that are neither blocked nor expired.`,
      { param: "team_id" },
    );
  }
  if (rows.length > MAX_AT_ONCE) {
    throw new CallError(
      "invalid_request",
      `Team ${teamId} has more than ${MAX_AT_ONCE} keys: send \`key_ids\` with at most ${MAX_AT_ONCE} of them at a time.`,
      { param: "key_ids" },
    );
  }
  return rows.map(({ token }) => ({ token, shown: token }));
}

export const KEY_BULK_UPDATES: readonly Route[] = [
  bulkUpdate,
  updateKeysOfTeam,
];
