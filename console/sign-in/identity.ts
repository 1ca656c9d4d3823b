import {
  textsOf,
  verifiedMail,
  type Claims,
} from "../../core/tokens/claims.ts";
import type { ProviderConfig } from "../../supervisor/sign-in/config.ts";
import { highestRole, type Role } from "../../supervisor/sign-in/roles.ts";

/** What the claims of a user mean here. */
type Identity =
  | {
      readonly kind: "allowed";
      readonly role: Role;
      /** As pages and the audit log name the user; never that of the operator. */
      readonly name: string;
    }
  | {
      readonly kind: "denied";
      /** A sentence for the user. */
      readonly why: string;
    };

const MAX_NAME_LENGTH = 100;

/**
 * Decides whether a user may sign in and with which role; the settings of the provider are the only source.
 * `claims` are those of the ID token, then of the userinfo response, which take precedence.
 */
export function identify(config: ProviderConfig, claims: Claims): Identity {
  const name = `${accountOf(claims)} (${config.name})`;
  if (!isAllowed(config, claims)) {
    return {
      kind: "denied",
      why: `${name} is not among the accounts that may sign in. Ask an admin of this console for access.`,
    };
  }
  const { claim, map, otherwise } = config.roles;
  const roles = valuesOf(claims, claim).flatMap((value) =>
    Object.hasOwn(map, value) ? (map[value] ?? []) : [],
  );
  const role = highestRole(roles) ?? otherwise ?? ownPageRole(config);
  return role === undefined
    ? {
        kind: "denied",
        why: `${name} has no role in this console. Ask an admin of this console for one.`,
      }
    : { kind: "allowed", role, name };
}

/** Everyone who is allowed in has at least the page of the own keys, where users have one. */
function ownPageRole({ allow, users }: ProviderConfig): Role | undefined {
  return users !== undefined && allow !== undefined ? "user" : undefined;
}

/** One match is enough; without `allow`, an account needs a role only. */
function isAllowed({ allow, roles }: ProviderConfig, claims: Claims): boolean {
  if (allow === undefined || allow.everyone === true) {
    return true;
  }
  const { domains = [], groups = [], emails = [] } = allow;
  const mail = verifiedMail(claims);
  const isListed = (list: readonly string[], value: string | undefined) =>
    value !== undefined && list.some((each) => each.toLowerCase() === value);
  return (
    isListed(emails, mail) ||
    isListed(domains, mail?.split("@").at(-1)) ||
    valuesOf(claims, roles.claim).some((value) => groups.includes(value))
  );
}

/** The texts of a claim; of the e-mail address only if it is verified. */
export function valuesOf(claims: Claims, name: string): readonly string[] {
  if (name === "email") {
    const mail = verifiedMail(claims);
    return mail === undefined ? [] : [mail];
  }
  return textsOf(claims, name);
}

/** The verified e-mail address, or what else names the account; in one line. */
function accountOf(claims: Claims): string {
  const { preferred_username: user, sub } = claims;
  const account =
    verifiedMail(claims) ??
    (typeof user === "string" && user.trim() !== "" ? user : String(sub));
  return account.replace(/\p{C}/gu, "").trim().slice(0, MAX_NAME_LENGTH);
}
