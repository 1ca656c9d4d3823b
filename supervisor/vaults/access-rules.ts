import type { Security } from "./database.ts";

const adminsOnly = { names: [], roles: ["_admin"] };

/** Access for the vault's own user only; administration for the server's admin only. */
export function memberRules(user: string): Security {
  return { admins: adminsOnly, members: { names: [user], roles: [] } };
}

/** Access for the server's admin only. Empty rules would admit every user. */
export const closedRules: Security = {
  admins: adminsOnly,
  members: adminsOnly,
};

/** Whether two sets of rules admit the same users; the order of names is irrelevant. */
export function sameRules(one: Security, other: Security): boolean {
  return textOf(one) === textOf(other);
}

/** The user of a vault whose rules are those of `hearth notes add`. */
export function memberOf(security: Security): string | null {
  const [user] = security.members.names;
  return user !== undefined && sameRules(security, memberRules(user))
    ? user
    : null;
}

function textOf({ admins, members }: Security): string {
  return JSON.stringify(
    [admins.names, admins.roles, members.names, members.roles].map((list) =>
      list.toSorted(),
    ),
  );
}
