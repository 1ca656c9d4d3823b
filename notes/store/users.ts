import { pbkdf2Sync, randomBytes } from "node:crypto";
import { Refusal } from "../refusal.ts";
import type { IncomingDocument } from "./incoming.ts";
import type { Store } from "./store.ts";

const PREFIX = "org.couchdb.user:";
const KEY_BYTES = 32;

const forbidden = (reason: string): Refusal => new Refusal("forbidden", reason);

/** The document to store: in `_users` a validated one with its password hashed, elsewhere the document itself. */
export function storable(
  store: Store,
  id: string,
  document: IncomingDocument,
): IncomingDocument {
  if (store.kind !== "users" || document.deleted) {
    return document;
  }
  const user = JSON.parse(`{${document.body.toString()}}`) as Record<
    string,
    unknown
  >;
  checkPassword(user.password);
  checkUser(id, user);
  if (user.password === undefined || user.password === null) {
    return document;
  }
  const { password, ...rest } = user;
  const members = {
    ...derivedKey(password as string, store.passwordIterations),
    ...withoutOldKey(rest),
  };
  return {
    ...document,
    body: Buffer.from(JSON.stringify(members).slice(1, -1)),
    type: "user",
  };
}

/** The members that CouchDB stores instead of a password. The salt is used as text, not decoded. */
function derivedKey(
  password: string,
  iterations: number,
): Record<string, unknown> {
  const salt = randomBytes(16).toString("hex");
  const key = pbkdf2Sync(password, salt, iterations, KEY_BYTES, "sha256");
  return {
    password_scheme: "pbkdf2",
    pbkdf2_prf: "sha256",
    salt,
    iterations,
    derived_key: key.toString("hex"),
  };
}

function withoutOldKey(user: Record<string, unknown>): Record<string, unknown> {
  const {
    password_scheme: _scheme,
    pbkdf2_prf: _prf,
    salt: _salt,
    iterations: _iterations,
    derived_key: _key,
    ...rest
  } = user;
  return rest;
}

function checkPassword(password: unknown): void {
  if (password === undefined || password === null) {
    return;
  }
  if (typeof password !== "string") {
    throw forbidden(`Password value of '${String(password)}' is invalid.`);
  }
}

function checkUser(id: string, user: Record<string, unknown>): void {
  const { name, roles, type } = user;
  if (type !== "user") {
    throw forbidden("doc.type must be user");
  }
  if (typeof name !== "string" || name === "") {
    throw forbidden("doc.name is required");
  }
  if (roles === undefined) {
    throw forbidden("doc.roles must exist");
  }
  if (!Array.isArray(roles)) {
    throw forbidden("doc.roles must be an array");
  }
  if (!roles.every((role) => typeof role === "string")) {
    throw forbidden("doc.roles can only contain strings");
  }
  if (id !== PREFIX + name) {
    throw forbidden("Doc ID must be of the form org.couchdb.user:name");
  }
  if (roles.some((role: string) => role.startsWith("_"))) {
    throw forbidden("No system roles (starting with underscore) in users db.");
  }
  if (name.startsWith("_")) {
    throw forbidden("Username may not start with underscore.");
  }
  if (name.includes(":")) {
    throw forbidden("Character `:` is not allowed in usernames.");
  }
}
