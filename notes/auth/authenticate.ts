import type { IncomingMessage } from "node:http";
import { USERS, type Databases } from "../databases.ts";
import type { Log } from "../log.ts";
import { Refusal } from "../refusal.ts";
import type { Settings } from "../settings.ts";
import { openLockout } from "./lockout.ts";
import {
  openPasswordCheck,
  parsePasswordHash,
  type PasswordHash,
} from "./passwords.ts";

/** Who is calling. */
export interface User {
  readonly name: string;
  readonly roles: readonly string[];
}

export type Authenticate = (
  request: IncomingMessage,
) => Promise<User | undefined>;

export const challenge = { "www-authenticate": 'Basic realm="couchdb"' };

interface Account extends User {
  readonly hash: PasswordHash | undefined;
}

/** Basic authentication against the ini's admins and the `_users` database; undefined without credentials. Throws 401, and 403 for a locked-out user. */
export function openAuthentication(
  settings: Settings,
  databases: Databases,
  log: Log,
): Authenticate {
  const check = openPasswordCheck();
  const lockout = openLockout();
  const findUser = openUserLookup(databases);
  return async (request) => {
    const credentials = readBasic(request.headers.authorization);
    if (credentials === undefined) return undefined;
    const { name, password } = credentials;
    const account = adminAccount(settings, name) ?? (await findUser(name));
    if (account?.hash === undefined) throw incorrect();
    const address = addressOf(request);
    const { salt } = account.hash;
    if (lockout.isLocked(address, name, salt)) throw locked();
    if (await check(password, account.hash)) {
      return { name: account.name, roles: account.roles };
    }
    if (lockout.failed(address, name, salt)) {
      log.warn({ user: name, address }, "user locked out for five minutes");
    }
    throw incorrect();
  };
}

const incorrect = (): Refusal =>
  new Refusal("unauthorized", "Name or password is incorrect.", challenge);

const locked = (): Refusal =>
  new Refusal(
    "forbidden",
    "Account is temporarily locked due to multiple authentication failures",
  );

function readBasic(
  header: string | undefined,
): { name: string; password: string } | undefined {
  const match = /^basic +(.*)$/i.exec(header ?? "");
  if (match === null) return undefined;
  const encoded = match[1]!.trim();
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(encoded)) {
    throw new Refusal(
      "bad_request",
      "Authorization header has invalid base64 value",
    );
  }
  const text = Buffer.from(encoded, "base64").toString();
  const colon = text.indexOf(":");
  return colon < 0
    ? undefined
    : { name: text.slice(0, colon), password: text.slice(colon + 1) };
}

function adminAccount(settings: Settings, name: string): Account | undefined {
  const admins = settings.admins();
  if (!Object.hasOwn(admins, name)) return undefined;
  return {
    name,
    roles: ["_admin"],
    hash: parsePasswordHash(admins[name]!),
  };
}

/** Reads user documents; they are remembered until the users database changes. */
function openUserLookup(
  databases: Databases,
): (name: string) => Promise<Account | undefined> {
  const MAX_REMEMBERED = 1000;
  const known = new Map<string, Account | undefined>();
  let knownAt = -1;
  return async (name) => {
    const users = await databases.open(USERS);
    const seq = users.state().updateSeq;
    if (seq !== knownAt || known.size >= MAX_REMEMBERED) known.clear();
    knownAt = seq;
    if (known.has(name)) return known.get(name);
    const account = await readAccount(users, name);
    if (users.state().updateSeq === seq) known.set(name, account);
    return account;
  };
}

async function readAccount(
  users: Awaited<ReturnType<Databases["open"]>>,
  name: string,
): Promise<Account | undefined> {
  try {
    const answer = await users.call(
      {
        operation: "getDocument",
        id: `org.couchdb.user:${name}`,
        query: {},
        maxDocumentSize: 0,
      },
      new AbortController().signal,
    );
    const pieces: Uint8Array[] = [];
    for await (const chunk of answer.chunks!) pieces.push(chunk);
    return accountOf(
      JSON.parse(Buffer.concat(pieces).toString()) as Record<string, unknown>,
    );
  } catch (failure) {
    if (failure instanceof Refusal && failure.code === "not_found") {
      return undefined;
    }
    throw failure;
  }
}

function accountOf(document: Record<string, unknown>): Account {
  const { name, roles, derived_key: key, salt, iterations } = document;
  const prf = document.pbkdf2_prf ?? "sha";
  const usable =
    document.password_scheme === "pbkdf2" &&
    typeof key === "string" &&
    typeof salt === "string" &&
    Number.isInteger(iterations);
  return {
    name: String(name),
    roles: Array.isArray(roles)
      ? roles.filter((role) => typeof role === "string")
      : [],
    hash: usable
      ? {
          prf: prf === "sha256" ? "sha256" : "sha1",
          key,
          salt,
          iterations: iterations as number,
        }
      : undefined,
  };
}

/** The caller's address: a proxy in front names it, or one device could lock out all. Of several the last one, as CouchDB has it. */
function addressOf(request: IncomingMessage): string {
  const last = String(request.headers["x-forwarded-for"] ?? "")
    .split(",")
    .at(-1);
  return last?.trim() || (request.socket.remoteAddress ?? "unknown");
}
