import type * as OpenIdClient from "openid-client";
import { codeOf, Failure, textOf } from "../../core/failure.ts";
import type { ProviderConfig } from "../../supervisor/sign-in/config.ts";

/** The provider could not be asked: nothing is known about the user. */
export class ProviderUnavailable extends Failure {}

/** The provider, or its tokens, say that this user is not signed in. */
export class ProviderDenial extends Failure {}

/** Of the clocks of this machine and of providers. */
export const CLOCK_TOLERANCE_SECONDS = 300;

/** Codes of errors of tokens and responses that do not belong to this sign-in. */
const CONTRADICTIONS: readonly unknown[] = [
  "OAUTH_INVALID_RESPONSE",
  "OAUTH_JWT_CLAIM_COMPARISON_FAILED",
  "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED",
];

export function titleOf({ name, title = name }: ProviderConfig): string {
  return title;
}

/** An error of a request for tokens, or for claims with a token, as one of the two above. */
export function providerError(
  client: typeof OpenIdClient,
  config: ProviderConfig,
  error: unknown,
  request: "tokens" | "claims",
): ProviderUnavailable | ProviderDenial {
  const title = titleOf(config);
  if (error instanceof client.AuthorizationResponseError) {
    return new ProviderDenial(
      `${title} did not sign you in (${codeWord(error.error)}). Try again, or sign in with the operator password.`,
      error,
    );
  }
  if (codeOf(error) === "OAUTH_JWT_TIMESTAMP_CHECK_FAILED") {
    return new ProviderDenial(
      `The clocks of this machine and of ${title} differ by more than ${CLOCK_TOLERANCE_SECONDS / 60} minutes: set both by NTP, then sign in again.`,
      error,
    );
  }
  const status = statusOf(error);
  const isUnauthorized = status === 401 || status === 403;
  if (
    isContradiction(client, error) ||
    (request === "claims" && isUnauthorized)
  ) {
    return new ProviderDenial(
      `${title} does not confirm your sign-in. Sign in again; if that fails, ask its administrator whether your account is active.`,
      error,
    );
  }
  if (error instanceof client.ResponseBodyError || isUnauthorized) {
    const why =
      error instanceof client.ResponseBodyError
        ? codeWord(error.error)
        : `status ${status}`;
    return new ProviderUnavailable(
      `${title} rejects this console (${why}): check client_id and client_secret of "${config.name}" under sign_in in the configuration, or sign in with the operator password.`,
      error,
    );
  }
  return unavailable(config, error);
}

/** No answer, or none that can be used. */
export function unavailable(
  config: ProviderConfig,
  error: unknown,
): ProviderUnavailable {
  return new ProviderUnavailable(
    `${titleOf(config)} is unavailable (${reasonOf(error)}). Sign in with the operator password, or try again later.`,
    error,
  );
}

/** What the provider or its tokens say contradicts this sign-in. */
function isContradiction(client: typeof OpenIdClient, error: unknown): boolean {
  return error instanceof client.ResponseBodyError
    ? error.error === "invalid_grant"
    : error instanceof client.ClientError &&
        CONTRADICTIONS.includes(error.code);
}

/** The HTTP status of the response that an error is about. */
function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) {
    return undefined;
  }
  if ("status" in error && typeof error.status === "number") {
    return error.status;
  }
  return error.cause instanceof Response ? error.cause.status : undefined;
}

/** ECONNREFUSED, "no answer in time", "status 502", or the library's sentence. */
function reasonOf(error: unknown): string {
  const status = statusOf(error);
  if (status !== undefined) {
    return `status ${status}`;
  }
  switch (codeOf(error)) {
    case "OAUTH_TIMEOUT":
      return "no answer in time";
    case "OAUTH_KEY_SELECTION_FAILED":
      return "it signed with a key that it did not publish";
    case "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED":
      return "it names another issuer than the configuration does: check issuer";
  }
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && codeOf(cause) !== undefined
    ? (codeOf(cause) ?? textOf(cause))
    : textOf(error);
}

/** Codes come from an address that anyone can write. */
function codeWord(code: string): string {
  return /^[a-z_]{1,40}$/.test(code) ? code : "unknown error";
}
