import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Settings } from "../settings.ts";
import type { Account } from "./accounts.ts";

const NAME = "AuthSession";
/** A cookie is renewed after this fraction of its lifetime, as in CouchDB. */
const RENEWED_AFTER = 0.1;

/** The contents of a session cookie, not yet verified. */
interface SessionClaim {
  readonly name: string;
  readonly since: number;
  readonly signature: Buffer;
}

/** Signed session cookies in CouchDB's format: name, time and signature. Stateless: a password change invalidates them. */
interface SessionCookies {
  readonly read: (header: string | undefined) => SessionClaim | undefined;
  readonly isValid: (claim: SessionClaim, account: Account) => boolean;
  readonly isDueForRenewal: (claim: SessionClaim) => boolean;
  /** The value of `Set-Cookie`. */
  readonly issue: (account: Account) => string;
  /** The value of `Set-Cookie` that ends a session. */
  readonly clear: () => string;
}

export function openSessionCookies(settings: Settings): SessionCookies {
  const ownSecret = randomBytes(32).toString("hex");
  const secret = (): string =>
    settings.get("chttpd_auth", "secret") ?? ownSecret;
  const seconds = (): number => Math.floor(Date.now() / 1000);
  const sign = (account: Account, since: number): Buffer =>
    createHmac("sha256", `${secret()}${account.hash?.salt ?? ""}`)
      .update(`${account.name}:${since}:${account.hash?.key ?? ""}`)
      .digest();
  const cookie = (value: string): string => {
    const age = settings.sessionSeconds();
    const expires = new Date(Date.now() + age * 1000).toUTCString();
    return `${NAME}=${value}; Version=1; expires=${expires}; Max-Age=${age}; Path=/; HttpOnly`;
  };
  return {
    read: (header) => readClaim(header),
    isValid: (claim, account) => {
      const age = seconds() - claim.since;
      if (account.hash === undefined) {
        return false;
      }
      if (age < 0 || age >= settings.sessionSeconds()) {
        return false;
      }
      const expected = sign(account, claim.since);
      return (
        expected.length === claim.signature.length &&
        timingSafeEqual(expected, claim.signature)
      );
    },
    isDueForRenewal: ({ since }) =>
      seconds() - since >= settings.sessionSeconds() * RENEWED_AFTER,
    issue: (account) => {
      const since = seconds();
      return cookie(
        Buffer.concat([
          Buffer.from(`${account.name}:${since.toString(16)}:`),
          sign(account, since),
        ]).toString("base64url"),
      );
    },
    clear: () => cookie(""),
  };
}

function readClaim(header: string | undefined): SessionClaim | undefined {
  const value = (header ?? "")
    .split(";")
    .map((part) => part.trim())
    .find((part) => part.startsWith(`${NAME}=`))
    ?.slice(NAME.length + 1);
  if (value === undefined || value === "") {
    return undefined;
  }
  const bytes = Buffer.from(value, "base64url");
  // User names contain no colon.
  const match = /^([^:]+):([0-9A-Fa-f]{1,12}):/.exec(bytes.toString("latin1"));
  if (match === null) {
    return undefined;
  }
  const name = bytes.subarray(0, Buffer.byteLength(match[1]!, "latin1"));
  return {
    name: name.toString(),
    since: Number.parseInt(match[2]!, 16),
    signature: bytes.subarray(match[0].length),
  };
}
