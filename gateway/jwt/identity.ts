import { z } from "zod";
import { claimAt, mailOf, verifiedMail } from "../../core/tokens/claims.ts";
import type { VerifiedToken } from "../../core/tokens/verify-token.ts";
import { MASTER_USER } from "../access/callers.ts";
import { keyFields } from "../admin/kinds/key.ts";
import type { JwtIssuerConfig } from "../config/types.ts";
import type { Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import { faultOfName } from "../ledger/names.ts";

/** What a verified token says about the payers of a call, with the prefix of its issuer. */
export interface JwtIdentity {
  readonly subject: string;
  /** null: its tokens name no user. */
  readonly userId: string | null;
  /** Verified, or of a claim that the operator named; null: unknown. */
  readonly email: string | null;
  /** The first that exists pays; empty: none is named. */
  readonly teamIds: readonly string[];
  readonly organizationId: string | null;
  /** Columns of a key that the issuer decides; null where this token does not limit. */
  readonly limits: Row;
  /** Ms since the epoch. */
  readonly issuedAt: number;
}

/** Throws 403 for a token without the claims that its issuer's settings name, or with those of another issuer. */
export function identityOf(
  issuer: JwtIssuerConfig,
  token: VerifiedToken,
): JwtIdentity {
  const { user, team, organization } = issuer.claims;
  const [userId = null] = idsAt(issuer, token, user, "user");
  const email = mailFrom(issuer, token);
  denyOtherDomain(issuer, token);
  const [organizationId = null] = idsAt(
    issuer,
    token,
    organization,
    "organization",
  );
  rejectUnstorable("subject", token.claims.sub);
  return {
    subject: token.claims.sub,
    userId,
    email,
    teamIds: teamsOf(issuer, token, team),
    organizationId,
    limits: limitsOf(issuer, token),
    issuedAt: token.issuedAt,
  };
}

function teamsOf(
  issuer: JwtIssuerConfig,
  token: VerifiedToken,
  claim: string | null,
): readonly string[] {
  const fallback = issuer.defaultTeam === null ? [] : [issuer.defaultTeam];
  const isNamed = claim !== null && claimAt(token.claims, claim) != null;
  return isNamed || issuer.defaultTeam === null
    ? [...idsAt(issuer, token, claim, "team"), ...fallback]
    : fallback;
}

/** The ids of a claim, which is a text, a number or, of teams, a list. A claim that the settings name is required. */
function idsAt(
  issuer: JwtIssuerConfig,
  { claims }: VerifiedToken,
  claim: string | null,
  noun: "user" | "team" | "organization",
): readonly string[] {
  if (claim === null) {
    return [];
  }
  const value = claimAt(claims, claim);
  const list = Array.isArray(value) && noun === "team" ? value : [value];
  const ids = list.filter(
    (each) => (typeof each === "string" && each !== "") || isId(each),
  );
  if (ids.length === 0 || ids.length < list.length) {
    throw denied(
      `The token names no ${noun}: its claim \`${claim}\` must be an id${noun === "team" ? " or a list of ids" : ""}. Ask the administrator of its issuer to add it.`,
    );
  }
  return ids.map((id) => checkedId(issuer, String(id), noun));
}

function rejectUnstorable(noun: string, id: string): void {
  const fault = faultOfName(id);
  if (fault !== null) {
    throw denied(`The id of the ${noun} that the token names ${fault}.`);
  }
}

function isId(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value);
}

function checkedId(
  { idPrefix, otherPrefixes }: JwtIssuerConfig,
  named: string,
  noun: string,
): string {
  const id = idPrefix + named;
  rejectUnstorable(noun, id);
  if (
    id === MASTER_USER ||
    (idPrefix === "" &&
      otherPrefixes.some((prefix) => prefix !== "" && id.startsWith(prefix)))
  ) {
    throw denied(
      `The token names a ${noun} that is not of its issuer. Ask the gateway's administrator which ids it may name.`,
    );
  }
  return id;
}

/** The operator vouches for a claim that the settings name; `email` itself must be verified by the issuer. */
function mailFrom(
  { claims: { email: claim } }: JwtIssuerConfig,
  { claims }: VerifiedToken,
): string | null {
  const mail =
    claim === null || claim === "email"
      ? verifiedMail(claims)
      : mailOf(claimAt(claims, claim));
  return mail ?? null;
}

function denyOtherDomain(issuer: JwtIssuerConfig, token: VerifiedToken): void {
  const { emailDomain } = issuer;
  if (
    emailDomain !== null &&
    mailFrom(issuer, token)?.split("@").at(-1) !== emailDomain
  ) {
    throw denied(
      `The token has no verified e-mail address of ${emailDomain}. Only accounts with one may call this gateway.`,
    );
  }
}

const LIMITS = {
  models: keyFields.models,
  max_budget: keyFields.max_budget,
  budget_duration: keyFields.budget_duration,
  tpm_limit: keyFields.tpm_limit,
  rpm_limit: keyFields.rpm_limit,
  max_parallel_requests: keyFields.max_parallel_requests,
} as const;

/** A value that is no limit rejects the token: without the limit it would allow more than its issuer meant. */
function limitsOf(issuer: JwtIssuerConfig, { claims }: VerifiedToken): Row {
  const limits: Record<string, unknown> = {};
  for (const [column, field] of Object.entries(LIMITS)) {
    const claim = issuer.claims[column as keyof typeof LIMITS];
    if (claim === null) {
      continue;
    }
    const parsed = (field as z.ZodType).safeParse(claimAt(claims, claim));
    if (!parsed.success) {
      throw denied(
        `The claim \`${claim}\` of the token ${parsed.error.issues[0]?.message ?? "is invalid"}. Ask the administrator of its issuer to correct it.`,
      );
    }
    limits[column] = parsed.data ?? null;
  }
  return { ...limits, allowed_routes: issuer.allowedRoutes };
}

export function denied(sentence: string): CallError {
  return new CallError("permission_denied", sentence);
}
