import type { IncomingMessage } from "node:http";
import { clientNetwork } from "../../core/client-network.ts";
import type { Databases } from "../databases.ts";
import type { Log } from "../log.ts";
import { Refusal } from "../refusal.ts";
import type { Settings } from "../settings.ts";
import {
  openAccounts,
  type Account,
  type Accounts,
  type User,
} from "./accounts.ts";
import { addressOf } from "./address.ts";
import { isBeyond, locks, openLockout, type Attempt } from "./lockout.ts";
import { openPasswordCheck } from "./passwords.ts";
import { openSessionCookies } from "./session-cookie.ts";
import { openTurns } from "./turns.ts";

/** An authenticated user. */
export interface Login {
  readonly user: User;
  readonly by: "default" | "cookie";
  /** The value of the response's `Set-Cookie`. */
  readonly setCookie?: string;
  /** Calls `listener` when the login ends from now on: password or roles changed, or user deleted. Returns a function that stops this. */
  readonly onEnd: (listener: () => void) => () => void;
  /** Whether the login has not ended by now. Rejects when the users cannot be read. */
  readonly isCurrent: () => Promise<boolean>;
}

export interface Authentication {
  /** Basic authentication or a session cookie; undefined without credentials. Throws 401, and 403 for a locked-out user. */
  readonly authenticate: (
    request: IncomingMessage,
  ) => Promise<Login | undefined>;
  /** Starts a session: its cookie is in `setCookie`. Throws like `authenticate`. */
  readonly logIn: (
    request: IncomingMessage,
    credentials: Credentials,
  ) => Promise<Login>;
  /** The value of `Set-Cookie` that ends a session. */
  readonly clearedCookie: () => string;
}

export const challenge = { "www-authenticate": 'Basic realm="couchdb"' };

/** Authentication against the ini's admins and the `_users` database. */
export function openAuthentication(
  settings: Settings,
  databases: Databases,
  log: Log,
): Authentication {
  const accounts = openAccounts(settings, databases);
  const isRight = openVerification(settings, log);
  const cookies = openSessionCookies(settings);
  const verified = async (
    request: IncomingMessage,
    credentials: Credentials,
  ): Promise<Account> => {
    const account = await accounts.find(credentials.name);
    const address = clientNetwork(addressOf(request, settings.trustedProxies));
    if (!(await isRight(address, credentials, account)) || !account) {
      throw incorrect();
    }
    return account;
  };
  const byCookie = async (
    request: IncomingMessage,
  ): Promise<Login | undefined> => {
    const claim = cookies.read(request.headers.cookie);
    if (claim === undefined) {
      return undefined;
    }
    const account = await accounts.find(claim.name);
    if (account === undefined || !cookies.isValid(claim, account)) {
      return undefined;
    }
    return {
      ...loginOf(accounts, account, "cookie"),
      ...(cookies.isDueForRenewal(claim)
        ? { setCookie: cookies.issue(account) }
        : {}),
    };
  };
  return {
    authenticate: async (request) => {
      const credentials = readBasic(request.headers.authorization);
      if (credentials === undefined) {
        return await byCookie(request);
      }
      const account = await verified(request, credentials);
      return loginOf(accounts, account, "default");
    },
    logIn: async (request, credentials) => {
      const account = await verified(request, credentials);
      return {
        ...loginOf(accounts, account, "cookie"),
        setCookie: cookies.issue(account),
      };
    },
    clearedCookie: cookies.clear,
  };
}

function loginOf(accounts: Accounts, account: Account, by: Login["by"]): Login {
  return {
    user: { name: account.name, roles: account.roles },
    by,
    onEnd: (listener) => accounts.onChange(account, listener),
    isCurrent: () => accounts.isCurrent(account),
  };
}

export interface Credentials {
  readonly name: string;
  readonly password: string;
}

/**
 * Whether a password is correct; throws 403 for a locked-out user. A password that was correct before costs nothing. Any other
 * counts before its key is derived, one derivation at a time, and an unknown name takes as long as an existing one.
 */
function openVerification(
  settings: Settings,
  log: Log,
): (
  address: string,
  credentials: Credentials,
  account: Account | undefined,
) => Promise<boolean> {
  const check = openPasswordCheck(settings.passwordIterations);
  const lockout = openLockout();
  const inTurn = openTurns();
  const adminsHere = openProven();
  const deriving = new Map<string, Promise<boolean>>();

  return async (address, { name, password }, account) => {
    const hash = account?.hash;
    const attempt: Attempt = { address, user: name, salt: hash?.salt ?? "" };
    const digest = check.digest(password);
    const trial = JSON.stringify([attempt, digest]);
    // CouchDB never locks an unknown user; further guesses are rejected without a check.
    const stop = (): false => {
      if (hash === undefined) {
        return false;
      }
      throw locked();
    };
    if (hash !== undefined && check.isRemembered(password, hash)) {
      // Other clients' guesses from this address must not lock out an admin that logged in from it, such as the supervisor.
      if (lockout.isLocked(attempt) && !adminsHere.has(trial)) {
        return stop();
      }
      if (account!.isAdmin) {
        adminsHere.add(trial);
      }
      return true;
    }
    let derived = deriving.get(trial);
    if (derived === undefined) {
      if (!lockout.start(attempt)) {
        return stop();
      }
      derived = inTurn(
        address,
        async () => await check.derive(password, hash),
      ).finally(() => {
        lockout.end(attempt);
        deriving.delete(trial);
      });
      deriving.set(trial, derived);
    }
    if (await derived) {
      if (account!.isAdmin) {
        adminsHere.add(trial);
      }
      return true;
    }
    const failures = lockout.failed(attempt);
    if (locks(failures) && hash !== undefined) {
      log.warn({ user: name, address }, "user locked out for five minutes");
    }
    return isBeyond(failures) ? stop() : false;
  };
}

/** The most recent successful logins. */
function openProven(): Pick<Set<string>, "has"> & {
  readonly add: (login: string) => void;
} {
  const MAX = 1000;
  const proven = new Set<string>();
  return {
    has: (login) => proven.has(login),
    add: (login) => {
      if (proven.size >= MAX) {
        proven.clear();
      }
      proven.add(login);
    },
  };
}

const incorrect = (): Refusal =>
  new Refusal("unauthorized", "Name or password is incorrect.", challenge);

const locked = (): Refusal =>
  new Refusal(
    "forbidden",
    "Account is temporarily locked due to multiple authentication failures",
  );

function readBasic(header: string | undefined): Credentials | undefined {
  const match = /^basic +(.*)$/i.exec(header ?? "");
  if (match === null) {
    return undefined;
  }
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
