import { administeredTeams, type Actor } from "../access/actor.ts";
import { MASTER_USER } from "../access/callers.ts";
import { outOfReach } from "../access/reach.ts";
import type { Role } from "../access/roles.ts";
import { query, type Client, type Pool } from "../database/pool.ts";
import { findRows, type Row } from "../database/rows.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import type { Admin } from "./admin-route.ts";
import type { Kind } from "./kinds/kind.ts";
import { USER } from "./kinds/user.ts";
import { create, unknown } from "./payers.ts";

export interface UserReference {
  readonly user_id?: string | null | undefined;
  readonly user_email?: string | null | undefined;
}

/** The condition that an address is a user's: they are compared in any case. */
export const SAME_EMAIL = "lower(user_email) = lower(?)";

/** The user that a reference names; null if unknown. Throws 400 for an empty reference. */
async function findUser(
  from: Pool | Client,
  { user_id: id, user_email: email }: UserReference,
): Promise<Row | null> {
  if (id == null && email == null) {
    throw invalidParam("user_id", "or `user_email` is required.");
  }
  const [row] =
    id == null
      ? await usersByEmail(from, email ?? "")
      : await findRows(from, "users", { user_id: id });
  return row ?? null;
}

/** In any case; an address that was imported twice names the older user. */
function usersByEmail(
  from: Pool | Client,
  email: string,
): Promise<readonly Row[]> {
  return query<Row>(
    from,
    `SELECT * FROM users WHERE ${SAME_EMAIL.replace("?", "$1")} ORDER BY created_at, user_id`,
    [email],
  );
}

async function requireUser(
  from: Pool | Client,
  reference: UserReference,
): Promise<Row> {
  const row = await findUser(from, reference);
  if (row === null) {
    throw unknown(USER, named(reference));
  }
  return row;
}

function named({ user_id: id, user_email: email }: UserReference): string {
  return id ?? email ?? "";
}

/** The user that a reference names, created if unknown. */
export async function findOrCreateUser(
  admin: Admin,
  client: Client,
  reference: UserReference,
): Promise<Row> {
  const known = await findUser(client, reference);
  if (known !== null) {
    return known;
  }
  const created = await create(
    admin,
    client,
    USER,
    {
      user_id: reference.user_id ?? crypto.randomUUID(),
      user_email: reference.user_email ?? undefined,
    },
    true,
  );
  return created ?? requireUser(client, reference);
}

/**
 * The user that a request names. Throws 404 to callers who reach all users; to others 403 unless the user exists and they may
 * change it, other than themselves, or see at least a part of it.
 */
export async function reachableUser(
  admin: Admin,
  reference: UserReference,
): Promise<Row> {
  if (admin.reachesAll) {
    return requireUser(admin.pool, reference);
  }
  const user = await findUser(admin.pool, reference);
  if (user === null || !(await isReached(admin, String(user["user_id"])))) {
    throw outOfReach(admin.rule, `user ${named(reference)}`);
  }
  return user;
}

async function isReached(admin: Admin, userId: string): Promise<boolean> {
  const { rule, actor, pool } = admin;
  return rule.kind === "management"
    ? userId !== actor.userId &&
        (await usersWithinReach(actor, pool, [userId])).has(userId)
    : userId === actor.userId || (await administersGroupOf(admin, userId));
}

/**
 * Users as the caller sees them: whole, or the name alone of those partly within reach; so is the caller's own user with a
 * key that others can have created. Keys and teams of such a user are filtered by reach anyway.
 */
export async function visibleUsers(
  admin: Admin,
  users: readonly Row[],
): Promise<readonly Row[]> {
  if (admin.reachesAll) {
    return users;
  }
  const whole = await usersWithinReach(
    admin.actor,
    admin.pool,
    users.map((user) => user["user_id"]),
  );
  const oneself = admin.actor.within === null ? admin.actor.userId : null;
  return users.map((user) => {
    const { user_id, user_email, user_alias } = user;
    return user_id === oneself || whole.has(String(user_id))
      ? user
      : { user_id, user_email, user_alias };
  });
}

/**
 * The users whose keys, teams and memberships all belong to organizations that the caller administers. The user of the
 * master key never counts.
 */
export async function usersWithinReach(
  actor: Pick<Actor, "organizations" | "organizationTeams">,
  from: Pool | Client,
  ids: readonly unknown[],
): Promise<ReadonlySet<string>> {
  const inside = await query<{ readonly user_id: string }>(
    from,
    `SELECT user_id FROM users u WHERE user_id = ANY($1) AND user_id <> $2 AND user_role LIKE 'internal_user%'
        AND EXISTS (SELECT FROM organization_members m WHERE m.user_id = u.user_id)
        AND NOT EXISTS (SELECT FROM organization_members m WHERE m.user_id = u.user_id AND organization_id <> ALL($3))
        AND NOT EXISTS (SELECT FROM team_members m WHERE m.user_id = u.user_id AND team_id <> ALL($4))
        AND NOT EXISTS (SELECT FROM keys k WHERE k.user_id = u.user_id
          AND NOT coalesce(team_id = ANY($4), organization_id = ANY($3), false))`,
    [ids, MASTER_USER, [...actor.organizations], [...actor.organizationTeams]],
  );
  return new Set(inside.map((row) => row.user_id));
}

/** Whether the caller administers a team or an organization of the user. */
async function administersGroupOf(
  { actor, pool }: Admin,
  userId: string,
): Promise<boolean> {
  const shared = await query(
    pool,
    `SELECT FROM team_members WHERE user_id = $1 AND team_id = ANY($2)
      UNION ALL SELECT FROM organization_members WHERE user_id = $1 AND organization_id = ANY($3) LIMIT 1`,
    [userId, administeredTeams(actor), [...actor.organizations]],
  );
  return shared.length > 0;
}

/** The membership that a request names, with the user's e-mail address; throws 400 for a user who is not a member. */
export async function requireMembership(
  from: Pool | Client,
  of: Kind,
  group: Row,
  reference: UserReference,
): Promise<Row> {
  const user = await findUser(from, reference);
  const [member] =
    user === null
      ? []
      : await findRows(from, of.table, { ...group, user_id: user["user_id"] });
  if (member === undefined) {
    throw new CallError(
      "invalid_request",
      `User ${reference.user_id ?? reference.user_email} is not in ${Object.values(group).join()}. Add it with ${of.createdBy}.`,
      { param: "user_id" },
    );
  }
  return { ...member, user_email: user?.["user_email"] };
}

/** Only a caller who reaches everything may give roles that reach everything. */
export function denyRole(admin: Admin, role: Role | null | undefined): void {
  if (admin.reachesAll || role == null || role.startsWith("internal_user")) {
    return;
  }
  throw new CallError(
    "permission_denied",
    `Only a proxy_admin may give the role ${role}.`,
    { param: "user_role" },
  );
}

/** Setting the account of a user gives that account the user's rights. */
export function denyAccount(
  admin: Admin,
  account: string | null | undefined,
): void {
  if (admin.reachesAll || account === undefined) {
    return;
  }
  throw new CallError(
    "permission_denied",
    "Only a proxy_admin may set `sso_user_id`.",
    { param: "sso_user_id" },
  );
}

/** Throws 409 for an e-mail address of another user. */
export async function rejectTakenEmail(
  from: Pool | Client,
  email: string | null | undefined,
  exceptUser: string | null,
): Promise<void> {
  if (email == null) {
    return;
  }
  const others = await usersByEmail(from, email);
  const other = others.find((user) => user["user_id"] !== exceptUser);
  if (other !== undefined) {
    throw new CallError(
      "already_exists",
      `\`user_email\` is already used by user ${String(other["user_id"])}.`,
      { param: "user_email" },
    );
  }
}
