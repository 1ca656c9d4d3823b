import { listOf } from "../../core/json.ts";
import { USERS } from "../databases.ts";
import { Refusal } from "../refusal.ts";
import type { SecurityObject } from "../store/protocol.ts";
import { challenge } from "./authenticate.ts";
import type { User } from "./accounts.ts";

/** Rights that a route can require, in ascending order. */
export type Right = "member" | "databaseAdmin" | "serverAdmin";

const notAllowed = (): Refusal =>
  new Refusal("forbidden", "You are not allowed to access this db.");

export function isServerAdmin(user: User): boolean {
  return user.roles.includes("_admin");
}

export function isDatabaseAdmin(user: User, security: SecurityObject): boolean {
  return isServerAdmin(user) || isNamed(user, security.admins);
}

/** Throws unless the user is a server admin. CouchDB answers 401 here, even to an authenticated user. */
export function requireServerAdmin(user: User): void {
  if (!isServerAdmin(user)) {
    throw new Refusal("unauthorized", "You are not a server admin.", challenge);
  }
}

/** Throws unless the user has this right on the database. */
export function requireRight(
  user: User,
  database: string,
  security: SecurityObject,
  right: Right,
): void {
  if (isServerAdmin(user)) {
    return;
  }
  if (right === "serverAdmin") {
    requireServerAdmin(user);
  }
  if (database === USERS) {
    throw notAllowed();
  }
  if (right === "databaseAdmin") {
    if (isDatabaseAdmin(user, security)) {
      return;
    }
    throw new Refusal(
      "unauthorized",
      "You are not a server or db admin.",
      challenge,
    );
  }
  const { members } = security;
  const open = isEmpty(members?.names) && isEmpty(members?.roles);
  if (!open && !isNamed(user, members) && !isDatabaseAdmin(user, security)) {
    throw notAllowed();
  }
}

function isNamed(user: User, group: SecurityObject["members"]): boolean {
  const names = listOf(group?.names);
  const roles = listOf(group?.roles);
  return (
    names.includes(user.name) || user.roles.some((role) => roles.includes(role))
  );
}

function isEmpty(value: unknown): boolean {
  return listOf(value).length === 0;
}
