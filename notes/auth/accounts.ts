import type { Database } from "../database.ts";
import { USERS, type Databases } from "../databases.ts";
import { entryOf } from "../dictionary.ts";
import { Refusal } from "../refusal.ts";
import type { Settings } from "../settings.ts";
import { parsePasswordHash, type PasswordHash } from "./passwords.ts";

/** The caller of a request. */
export interface User {
  readonly name: string;
  readonly roles: readonly string[];
}

export interface Account extends User {
  readonly hash: PasswordHash | undefined;
  /** Whether the account is a server admin of the ini, which no user document can override. */
  readonly isAdmin: boolean;
}

/** The accounts of the ini and of the `_users` database. */
export interface Accounts {
  readonly find: (name: string) => Promise<Account | undefined>;
  /** Whether the account still exists with this password and these roles. Rejects when the users cannot be read. */
  readonly isCurrent: (account: Account) => Promise<boolean>;
  /** Calls `listener` once when the password or roles of this account change from now on, or it is deleted. Returns a function that stops this. */
  readonly onChange: (account: Account, listener: () => void) => () => void;
}

interface Watch {
  readonly account: Account;
  readonly listener: () => void;
}

export function openAccounts(
  settings: Settings,
  databases: Databases,
): Accounts {
  const watches = new Set<Watch>();
  const findUser = openUserLookup(databases);
  const find = async (name: string): Promise<Account | undefined> =>
    adminAccount(settings, name) ?? (await findUser(name));
  settings.onChange(() => void review());
  databases.onUsersChange(() => void review());

  async function review(): Promise<void> {
    const names = new Set([...watches].map(({ account }) => account.name));
    for (const name of names) {
      // If the users cannot be read now, the next request or the next change of a feed reports it.
      const now = await find(name).catch(() => null);
      if (now === null) {
        continue;
      }
      for (const watch of [...watches]) {
        if (watch.account.name !== name || isSame(watch.account, now)) {
          continue;
        }
        watches.delete(watch);
        watch.listener();
      }
    }
  }

  return {
    find,
    isCurrent: async (account) => isSame(account, await find(account.name)),
    onChange: (account, listener) => {
      const watch = { account, listener };
      watches.add(watch);
      return () => watches.delete(watch);
    },
  };
}

function isSame(before: Account, now: Account | undefined): boolean {
  return (
    now !== undefined &&
    before.hash?.salt === now.hash?.salt &&
    before.hash?.key === now.hash?.key &&
    before.roles.join("\n") === now.roles.join("\n")
  );
}

function adminAccount(settings: Settings, name: string): Account | undefined {
  const hash = entryOf(settings.admins(), name);
  if (hash === undefined) {
    return undefined;
  }
  return {
    name,
    roles: ["_admin"],
    hash: parsePasswordHash(hash),
    isAdmin: true,
  };
}

/** Reads user documents and caches them until the users database changes or is reopened. */
function openUserLookup(
  databases: Databases,
): (name: string) => Promise<Account | undefined> {
  const MAX_REMEMBERED = 1000;
  const known = new Map<string, Account | undefined>();
  let knownOf: Database | undefined;
  let knownAt = -1;
  return async (name) => {
    const users = await databases.open(USERS);
    const seq = users.state().updateSeq;
    const isKnown = users === knownOf && seq === knownAt;
    if (!isKnown || known.size >= MAX_REMEMBERED) {
      known.clear();
    }
    knownOf = users;
    knownAt = seq;
    if (known.has(name)) {
      return known.get(name);
    }
    const account = await readAccount(users, name);
    if (users === knownOf && users.state().updateSeq === seq) {
      known.set(name, account);
    }
    return account;
  };
}

async function readAccount(
  users: Database,
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
    for await (const chunk of answer.chunks!) {
      pieces.push(chunk);
    }
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
    isAdmin: false,
  };
}
