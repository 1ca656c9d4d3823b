/** From the most rights to the fewest. */
export const ROLES = {
  proxy_admin: "All rights on everything.",
  proxy_admin_viewer: "Reads everything, changes nothing, makes no calls.",
  org_admin: "Users, teams and keys of the organizations it administers.",
  internal_user: "Calls models; own keys and own spend.",
  internal_user_viewer: "Sees own keys and own spend; makes no calls.",
} as const;

export type Role = keyof typeof ROLES;

export function isRole(text: string): text is Role {
  return Object.hasOwn(ROLES, text);
}

/** The default role of a user. */
export function roleNamed(text = ""): Role {
  return isRole(text) ? text : "internal_user";
}

export function outranks(one: Role, other: Role): boolean {
  const roles = Object.keys(ROLES);
  return roles.indexOf(one) < roles.indexOf(other);
}

/** The role of a key that others can take over: it no longer reaches everything. */
export function roleOfSharedKey(role: Role): Role {
  if (role === "proxy_admin") {
    return "internal_user";
  }
  return role === "proxy_admin_viewer" ? "internal_user_viewer" : role;
}

/** The role of an organization's administrator. */
export function roleWith(role: Role, administersOrganization: boolean): Role {
  return administersOrganization && outranks("org_admin", role)
    ? "org_admin"
    : role;
}
