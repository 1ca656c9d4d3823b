import type { JWTHeaderParameters, JWTPayload } from "jose";
import { parseDocument } from "yaml";
import type { Claims } from "./claims.ts";
import type { SigningKeys } from "./signing-keys.ts";
import { IssuerUnavailable, TokenRejected } from "./token-errors.ts";

/** Algorithms of signatures that only the holder of a private key can make. */
export const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
] as const;

export type Algorithm = (typeof ALGORITHMS)[number];

/** What a token must be to be accepted. */
interface TokenRules {
  readonly issuer: string;
  /** One of them must be among the token's. */
  readonly audiences: readonly string[];
  readonly algorithms: readonly Algorithm[];
  /** How far the issuer's clock may differ, in ms. */
  readonly leewayMs: number;
}

export interface VerifiedToken {
  readonly claims: Claims & { readonly sub: string };
  /** Ms since the epoch. */
  readonly issuedAt: number;
  /** Ms since the epoch; without leeway. */
  readonly expiresAt: number;
}

const MAX_LENGTH = 16_384;
const REQUEST = "Request a new token from its issuer.";

/** Whether a credential has the form of a signed token; nothing of it is verified. */
export function looksLikeToken(credential: string): boolean {
  return /^eyJ[\w-]+\.[\w-]+\.[\w-]*$/.test(credential);
}

/** The issuer that a token names, to choose the rules; nothing of it is verified. Throws a TokenRejected. */
export async function namedIssuer(token: string): Promise<string> {
  rejectHuge(token);
  const { decodeJwt } = await import("jose");
  try {
    const { iss } = decodeJwt(token);
    if (typeof iss === "string") {
      return iss;
    }
  } catch {
    throw new TokenRejected(`The token is not a JSON Web Token. ${REQUEST}`);
  }
  throw new TokenRejected(
    `The token names no issuer (claim \`iss\`). ${REQUEST}`,
  );
}

/**
 * Verifies signature, issuer, audience and times of a token. Throws a TokenRejected, or an IssuerUnavailable while the
 * issuer's keys cannot be had. `now` is in ms since the epoch.
 */
export async function verifyToken(
  token: string,
  rules: TokenRules,
  keys: SigningKeys,
  now: number,
): Promise<VerifiedToken> {
  rejectHuge(token);
  const { jwtVerify } = await import("jose");
  try {
    const { payload } = await jwtVerify(
      token,
      (header, given) => {
        rejectHeader(header);
        return keys.find(header, given);
      },
      {
        issuer: rules.issuer,
        audience: [...rules.audiences],
        algorithms: [...rules.algorithms],
        clockTolerance: rules.leewayMs / 1000,
        currentDate: new Date(now),
        requiredClaims: ["exp", "iat", "sub"],
      },
    );
    rejectRepeatedMembers(token);
    return readClaims(payload, rules, now);
  } catch (error) {
    throw await asRejection(error);
  }
}

function rejectHuge(token: string): void {
  if (token.length > MAX_LENGTH) {
    throw new TokenRejected(
      `The token is longer than ${MAX_LENGTH} characters. Request one with fewer claims.`,
    );
  }
}

/** Headers that bring or point to a key of the sender's choice. */
const KEY_HEADERS = ["jku", "jwk", "x5u", "x5c"];
/** Types of ID tokens and access tokens (RFC 9068); logout tokens and proofs of possession have others. */
const TYPES = ["jwt", "at+jwt", "application/at+jwt"];

function rejectHeader(header: JWTHeaderParameters): void {
  const { kid, typ } = header;
  if (typeof kid !== "string" || kid === "") {
    throw new TokenRejected(
      "The token does not name the key that it is signed with (header `kid`). Configure its issuer to do so.",
    );
  }
  const brought = KEY_HEADERS.find((name) => Object.hasOwn(header, name));
  if (brought !== undefined) {
    throw new TokenRejected(
      `The token brings its own key (header \`${brought}\`), which is not accepted. Configure its issuer to send \`kid\` only.`,
    );
  }
  if (typ !== undefined && !TYPES.includes(String(typ).toLowerCase())) {
    throw new TokenRejected(
      "The token is of another type than ID tokens and access tokens. Send one of these.",
    );
  }
}

/** The parsers of a repeated member disagree which value counts. Called for signed tokens only. */
function rejectRepeatedMembers(token: string): void {
  for (const part of token.split(".", 2)) {
    const json = Buffer.from(part, "base64url").toString("utf8");
    // JSON is YAML, whose reader knows repeated keys, also within other members and under other escapes.
    const { errors } = parseDocument(json, { uniqueKeys: true });
    if (errors.some(({ code }) => code === "DUPLICATE_KEY")) {
      throw new TokenRejected(`The token has a claim twice. ${REQUEST}`);
    }
  }
}

function readClaims(
  payload: JWTPayload,
  { leewayMs }: TokenRules,
  now: number,
): VerifiedToken {
  const { sub, iat = NaN, exp = NaN } = payload;
  if (typeof sub !== "string" || sub === "") {
    throw new TokenRejected(
      `The token names no subject (claim \`sub\`). ${REQUEST}`,
    );
  }
  if (iat * 1000 > now + leewayMs) {
    throw new TokenRejected(
      "The token was issued in the future: set the clocks of its issuer and of this machine by NTP.",
    );
  }
  if ("cnf" in payload || "events" in payload) {
    throw new TokenRejected(
      "The token is bound to a key, or reports an event: request a plain bearer token from its issuer.",
    );
  }
  return {
    claims: { ...payload, sub },
    issuedAt: iat * 1000,
    expiresAt: exp * 1000,
  };
}

/** Every error of the library as a sentence: whatever a token contains, it is rejected and never an internal error. */
async function asRejection(
  error: unknown,
): Promise<TokenRejected | IssuerUnavailable> {
  if (error instanceof TokenRejected || error instanceof IssuerUnavailable) {
    return error;
  }
  const { errors } = await import("jose");
  const reject = (sentence: string) =>
    new TokenRejected(sentence, { cause: error });
  if (error instanceof errors.JWTExpired) {
    return reject(`The token has expired. ${REQUEST}`);
  }
  if (error instanceof errors.JWTClaimValidationFailed) {
    switch (error.claim) {
      case "aud":
        return reject(
          "The token is for another audience (claim `aud`). Request one for this service.",
        );
      case "nbf":
        return reject(
          "The token is not valid yet (claim `nbf`): set the clocks of its issuer and of this machine by NTP.",
        );
      default:
        return reject(
          `The claim \`${error.claim}\` of the token is missing or invalid. ${REQUEST}`,
        );
    }
  }
  if (error instanceof errors.JOSEAlgNotAllowed) {
    return reject(
      "The algorithm of the token's signature is not accepted from its issuer: set `algorithms` of the issuer if it should be.",
    );
  }
  if (error instanceof errors.JWKSNoMatchingKey) {
    return reject(
      `The token is signed with a key that its issuer does not publish. ${REQUEST}`,
    );
  }
  return reject(`The signature of the token is invalid. ${REQUEST}`);
}
