import type { Security } from "./database.ts";

const adminsOnly = { names: [], roles: ["_admin"] };

/** Who may in: the vault's own user and nobody else; only the server's admin may administer it. */
export function memberRules(user: string): Security {
  return { admins: adminsOnly, members: { names: [user], roles: [] } };
}

/** Nobody but the server's admin. Empty rules would let every user in. */
export const closedRules: Security = {
  admins: adminsOnly,
  members: adminsOnly,
};

/** Whether two rules let the same in, whatever the order of their names. */
export function sameRules(one: Security, other: Security): boolean {
  return textOf(one) === textOf(other);
}

function textOf({ admins, members }: Security): string {
  return JSON.stringify(
    [admins.names, admins.roles, members.names, members.roles].map((list) =>
      list.toSorted(),
    ),
  );
}
