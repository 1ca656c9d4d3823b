import { administeredTeams } from "../access/actor.ts";
import { MASTER_USER } from "../access/callers.ts";
import { outOfReach } from "../access/reach.ts";
import type { Role } from "../access/roles.ts";
import { query, type Client, type Pool } from "../database/pool.ts";
import { findRows, type Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import type { Admin } from "./admin-route.ts";
import type { Kind } from "./kinds/kind.ts";
import { USER } from "./kinds/user.ts";
import { create, unknown } from "./payers.ts";

export interface UserReference {
  readonly user_id?: string | null | undefined;
  readonly user_email?: string | null | undefined;
}

/** The user that a reference names; null when there is none. Throws 400 for a reference that names nobody. */
export async function findUser(
  from: Pool | Client,
  { user_id: id, user_email: email }: UserReference,
): Promise<Row | null> {
  if (id == null && email == null) {
    throw new CallError(
      "invalid_request",
      "`user_id` is missing: name a user by `user_id` or `user_email`.",
      { param: "user_id" },
    );
  }
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
  if (row === null) {
    throw unknown(USER, reference.user_id ?? reference.user_email ?? "");
  }
  return row;
}

/** A user who is made where there is none. */
export async function findOrMakeUser(
  admin: Admin,
  client: Client,
  reference: UserReference,
): Promise<Row> {
  const known = await findUser(client, reference);
  if (known !== null) {
    return known;
  }
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

/** Throws 403 unless a user is somebody's to change, or to see, be it in part. */
export async function refuseUser(admin: Admin, user: Row): Promise<void> {
  if (admin.reachesAll) {
    return;
  }
  const userId = String(user["user_id"]);
  const isReached =
    admin.rule.kind === "management"
      ? (await whollyTheirs(admin, [user])).has(userId)
      : userId === admin.actor.userId || (await sharesWith(admin, userId));
  if (!isReached) {
    throw outOfReach(admin.rule, `user ${userId}`);
  }
}

/**
 * Users as somebody sees them: whole, or the name alone of those who are theirs only in part; so is oneself by a key that
 * others can have made. What they see of such a user's keys and teams is what they reach anyway.
 */
export async function seenUsers(
  admin: Admin,
  users: readonly Row[],
): Promise<readonly Row[]> {
  if (admin.reachesAll) {
    return users;
  }
  const whole = await whollyTheirs(admin, users);
  const oneself = admin.actor.within === null ? admin.actor.userId : null;
  return users.map((user) => {
    const { user_id, user_email, user_alias } = user;
    return user_id === oneself || whole.has(String(user_id))
      ? user
      : { user_id, user_email, user_alias };
  });
}

/**
 * Those of whom all that they have and are lies in organizations that somebody administers. The master key's user is
 * nobody's.
 */
async function whollyTheirs(
  { actor, pool }: Admin,
  users: readonly Row[],
): Promise<ReadonlySet<string>> {
  const inside = await query<{ readonly user_id: string }>(
    pool,
    `SELECT user_id FROM users u WHERE user_id = ANY($1) AND user_id <> $2 AND user_role LIKE 'internal_user%'
        AND EXISTS (SELECT FROM organization_members m WHERE m.user_id = u.user_id)
        AND NOT EXISTS (SELECT FROM organization_members m WHERE m.user_id = u.user_id AND organization_id <> ALL($3))
        AND NOT EXISTS (SELECT FROM team_members m WHERE m.user_id = u.user_id AND team_id <> ALL($4))
        AND NOT EXISTS (SELECT FROM keys k WHERE k.user_id = u.user_id
          AND NOT coalesce(team_id = ANY($4), organization_id = ANY($3), false))`,
    [
      users.map((user) => user["user_id"]),
      MASTER_USER,
      [...actor.organizations],
      [...actor.organizationTeams],
    ],
  );
  return new Set(inside.map((row) => row.user_id));
}

/** A user is seen by the admins of its teams and of its organizations. */
async function sharesWith(
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

/** The membership that a request names, with the user's address; throws 400 for a user who is no member. */
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

/** Roles on everything are given by those who have them. */
export function refuseRole(admin: Admin, asked: Role | null | undefined): void {
  if (admin.reachesAll || asked == null || asked.startsWith("internal_user")) {
    return;
  }
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
  if (email == null) {
    return;
  }
  const [other] = await findRows(from, "users", { user_email: email });
  if (other !== undefined && other["user_id"] !== exceptUser) {
    throw new CallError(
      "already_exists",
      `\`user_email\` is taken already: user ${String(other["user_id"])} has it.`,
      { param: "user_email" },
    );
  }
}
