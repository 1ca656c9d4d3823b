/** Roles in the console, each with the rights of those before it. */
export const ROLES = ["user", "viewer", "operator", "admin"] as const;

/**
 * user: only the page of the own keys; viewer: sees everything, changes nothing; operator: also restarts, jobs, notes, silences; admin: also keys, users, teams,
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
