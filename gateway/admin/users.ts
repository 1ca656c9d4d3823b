import { z } from "zod";
import { query, transaction } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { rejectionOf } from "../http/conflicts.ts";
import { invalidParam } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { checkInput } from "./body.ts";
import { denySettingSpend } from "./key-owner.ts";
import { KEY } from "./kinds/key.ts";
import { MEMBER } from "./kinds/member.ts";
import { ORGANIZATION_MEMBER } from "./kinds/organization.ts";
import { out } from "./kinds/out.ts";
import { USER, userFields, userReference, userRow } from "./kinds/user.ts";
import { flag, someNames, spent } from "./kinds/values.ts";
import { newUser } from "./new-user.ts";
import { answerRow, change, remove } from "./payers.ts";
import { changeWithSpend } from "./spend.ts";
import {
  denyAccount,
  denyRole,
  rejectTakenEmail,
  reachableUser,
} from "./user-access.ts";

const updateFields = z.object({
  ...userFields,
  ...userReference,
  spend: spent,
});

async function updateUser(
  admin: Admin,
  { spend, user_id, ...fields }: z.output<typeof updateFields>,
): Promise<Row> {
  const user = await reachableUser(admin, {
    user_id,
    user_email: fields.user_email,
  });
  denyRole(admin, fields.user_role);
  denyAccount(admin, fields.sso_user_id);
  if (spend != null) {
    denySettingSpend(admin);
  }
  const id = { user_id: user["user_id"] };
  const row = await changeWithSpend(admin, USER, spend, async (client) => {
    await rejectTakenEmail(client, fields.user_email, String(id.user_id));
    return change(admin, client, USER, id, fields);
  });
  return answerRow(admin, USER, row);
}

const update = adminRoute(
  "POST /user/update",
  {
    summary: "Update a user; null resets a field.",
    input: updateFields,
    answer: z.object({ user_id: out.text, data: userRow }),
  },
  async (admin, fields) => {
    const data = await updateUser(admin, fields);
    return { user_id: data["user_id"], data };
  },
);

const MAX_AT_ONCE = 500;

const bulkUpdate = adminRoute(
  "POST /user/bulk_update",
  {
    summary: "Update several users, or all; each succeeds or fails on its own.",
    input: z.object({
      users: z
        .array(z.looseObject(userReference))
        .max(MAX_AT_ONCE, `must have at most ${MAX_AT_ONCE} entries`)
        .nullish(),
      all_users: flag.nullish(),
      user_updates: z.looseObject({}).nullish(),
    }),
    answer: z.object({
      results: z.array(
        z.object({
          user_id: out.text.nullable(),
          user_email: out.text.nullable(),
          success: z.boolean(),
          error: out.text.nullable(),
          updated_user: userRow.nullable(),
        }),
      ),
      total_requested: out.count,
      successful_updates: out.count,
      failed_updates: out.count,
    }),
  },
  async (admin, { users, all_users: all, user_updates: updates }) => {
    const entries =
      all === true
        ? (
            await query<{ user_id: string }>(
              admin.pool,
              "SELECT user_id FROM users ORDER BY user_id",
            )
          ).map((user) => ({ ...updates, ...user }))
        : users;
    if (entries == null || entries.length === 0) {
      throw invalidParam(
        "users",
        "is required: a list of users with their changes; or send `all_users` with `user_updates`.",
      );
    }
    const results: Row[] = [];
    for (const entry of entries) {
      try {
        const updated = await updateUser(
          admin,
          checkInput(updateFields, entry),
        );
        results.push({
          user_id: updated["user_id"],
          user_email: updated["user_email"],
          success: true,
          error: null,
          updated_user: updated,
        });
      } catch (error) {
        results.push({
          user_id: entry.user_id ?? null,
          user_email: null,
          success: false,
          error: rejectionOf(error).message,
          updated_user: null,
        });
      }
    }
    const successful = results.filter((result) => result["success"] === true);
    return {
      results,
      total_requested: results.length,
      successful_updates: successful.length,
      failed_updates: results.length - successful.length,
    };
  },
);

const deleteUsers = adminRoute(
  "POST /user/delete",
  {
    summary:
      "Delete users with their keys and memberships. Answers the number of deleted users.",
    input: z.object({ user_ids: someNames }),
    answer: out.count,
  },
  async (admin, { user_ids: userIds }) => {
    for (const userId of userIds) {
      await reachableUser(admin, { user_id: userId });
    }
    return transaction(admin.pool, async (client) => {
      let count = 0;
      for (const userId of new Set(userIds)) {
        const id = { user_id: userId };
        for (const kind of [KEY, MEMBER, ORGANIZATION_MEMBER]) {
          await remove(admin, client, kind, id);
        }
        count += (await remove(admin, client, USER, id)).length;
      }
      return count;
    });
  },
);

export const USER_CHANGES: readonly Route[] = [
  newUser,
  update,
  bulkUpdate,
  deleteUsers,
];
