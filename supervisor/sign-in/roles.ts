/** Roles in the console, each with the rights of those before it. */
export const ROLES = ["viewer", "operator", "admin"] as const;

/**
 * viewer: sees everything, changes nothing; operator: also restarts, jobs, notes, silences; admin: also keys, users, teams,
 * budgets, and everything else.
 */
export type Role = (typeof ROLES)[number];

/** Whether `role` has the rights of `needed`. */
export function includesRole(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed);
}

/** The role with the most rights; undefined for none. */
export function highestRole(roles: readonly Role[]): Role | undefined {
  return ROLES.findLast((role) => roles.includes(role));
}
