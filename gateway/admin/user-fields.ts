import { z } from "zod";
import { ROLES, type Role } from "../access/policy.ts";
import { query, type Client, type Pool } from "../db/pool.ts";
import { findRows, type Row } from "../db/rows.ts";
import { CallError } from "../http/errors.ts";
import { limits, models, name, object } from "./fields.ts";
import { create, ORGANIZATION_MEMBER, USER, unknown } from "./payers.ts";
import type { Admin } from "./route.ts";

export const role = z.enum(
  Object.keys(ROLES) as [Role, ...Role[]],
  `it may be ${Object.keys(ROLES).join(", ")}`,
);

/** What every route that writes users takes. */
export const userFields = {
  ...limits,
  user_email: z.email("it must be an e-mail address").max(256).nullish(),
  user_alias: name.nullish(),
  user_role: role.nullish(),
  models: models.nullish(),
  metadata: object.nullish(),
} as const;

/** A user by id or e-mail, as routes name one. */
export const userReference = {
  user_id: name.nullish(),
  user_email: z.email("it must be an e-mail address").max(256).nullish(),
} as const;

export interface UserReference {
  readonly user_id?: string | null | undefined;
  readonly user_email?: string | null | undefined;
}

/** The user that a reference names; null when there is none. Throws 400 for a reference that names nobody. */
export async function findUser(
  from: Pool | Client,
  { user_id: id, user_email: email }: UserReference,
): Promise<Row | null> {
  if (id == null && email == null)
    throw new CallError(
      "invalid_request",
      "`user_id` is missing: name a user by `user_id` or `user_email`.",
      { param: "user_id" },
    );
  const [row] = await findRows(
    from,
    "users",
    id == null ? { user_email: email } : { user_id: id },
  );
  return row ?? null;
}

export async function requireUser(
  from: Pool | Client,
  reference: UserReference,
): Promise<Row> {
  const row = await findUser(from, reference);
  if (row === null)
    throw unknown(USER, reference.user_id ?? reference.user_email ?? "");
  return row;
}

/** A user who is made where there is none. */
export async function findOrMakeUser(
  admin: Admin,
  client: Client,
  reference: UserReference,
): Promise<Row> {
  const known = await findUser(client, reference);
  if (known !== null) return known;
  const made = await create(
    admin,
    client,
    USER,
    {
      user_id: reference.user_id ?? crypto.randomUUID(),
      user_email: reference.user_email ?? undefined,
    },
    true,
  );
  return made ?? requireUser(client, reference);
}

/**
 * Throws 403 unless a user is within reach: whoever administers all organizations that the user is in, for a user who
 * has no rights on everything.
 */
export async function refuseUser(admin: Admin, user: Row): Promise<void> {
  if (admin.reachesAll) return;
  const userId = String(user["user_id"]);
  const facts = { what: `user ${userId}`, userId };
  const memberships = await findRows(admin.pool, ORGANIZATION_MEMBER.table, {
    user_id: userId,
  });
  const { actor, rule } = admin;
  const administered =
    memberships.length > 0 &&
    memberships.every((row) =>
      actor.organizations.has(String(row["organization_id"])),
    ) &&
    !String(user["user_role"]).startsWith("proxy_admin");
  if (rule.reach[actor.role] === "organization" && administered) return;
  if (rule.kind === "info" && (await sharesAdministeredTeam(admin, userId)))
    return;
  admin.refuse(facts);
}

/** A team's admin sees the users of the team. */
async function sharesAdministeredTeam(
  admin: Admin,
  userId: string,
): Promise<boolean> {
  if (!admin.rule.teamAdmin) return false;
  const rows = await query(
    admin.pool,
    "SELECT 1 FROM team_members WHERE user_id = $1 AND team_id = ANY($2) LIMIT 1",
    [
      userId,
      [...admin.actor.teams]
        .filter(([, part]) => part === "admin")
        .map(([team]) => team),
    ],
  );
  return rows.length > 0;
}

/** Roles on everything are given by those who have them. */
export function refuseRole(admin: Admin, asked: Role | null | undefined): void {
  if (admin.reachesAll || asked == null || asked.startsWith("internal_user"))
    return;
  throw new CallError(
    "permission_denied",
    `Only a proxy_admin may give the role ${asked}.`,
    { param: "user_role" },
  );
}

/** Refuses an e-mail address that another user has. */
export async function refuseTakenEmail(
  from: Pool | Client,
  email: string | null | undefined,
  exceptUser: string | null,
): Promise<void> {
  if (email == null) return;
  const [other] = await findRows(from, "users", { user_email: email });
  if (other !== undefined && other["user_id"] !== exceptUser)
    throw new CallError(
      "already_exists",
      `\`user_email\` is taken already: user ${String(other["user_id"])} has it.`,
      { param: "user_email" },
    );
}
