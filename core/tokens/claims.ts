/** Claims of a token, or of a userinfo response. */
export type Claims = Readonly<Record<string, unknown>>;

/** A claim by its name, else by a path of names: `realm_access.roles` is a claim within another one. */
export function claimAt(claims: Claims, name: string): unknown {
  return Object.hasOwn(claims, name)
    ? claims[name]
    : name.split(".").reduce<unknown>(memberOf, claims);
}

/** The texts of a claim, which is a text or a list of them. */
export function textsOf(claims: Claims, name: string): readonly string[] {
  const value = claimAt(claims, name);
  return (Array.isArray(value) ? value : [value]).filter(
    (each): each is string => typeof each === "string",
  );
}

/** Becomes an ordinary "k" in lower case: the address would be that of another account. */
const KELVIN_SIGN = "\u212a";

/** The verified e-mail address. One that the issuer has not verified may be anybody's. */
export function verifiedMail(claims: Claims): string | undefined {
  const { email, email_verified: verified } = claims;
  return verified === true || verified === "true" ? mailOf(email) : undefined;
}

/** An e-mail address in lower case; undefined for anything else. */
export function mailOf(value: unknown): string | undefined {
  return typeof value === "string" &&
    value.includes("@") &&
    !value.includes(KELVIN_SIGN)
    ? value.toLowerCase()
    : undefined;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" &&
    value !== null &&
    Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}
