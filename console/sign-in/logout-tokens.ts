import { z } from "zod";
import { SigningKeys } from "../../core/tokens/signing-keys.ts";
import { IssuerUnavailable } from "../../core/tokens/token-errors.ts";
import type { ProviderConfig } from "../../supervisor/sign-in/config.ts";
import { KEEP_KEYS_MS, REFRESH_KEYS_MS } from "./command-tokens.ts";
import {
  CLOCK_TOLERANCE_SECONDS,
  ProviderDenial,
  unavailable,
} from "./provider-errors.ts";

/** Whose sessions end: those of one session at the provider or, without `sid`, all of a user. */
export interface LoggedOut {
  readonly sid: string | null;
  readonly subject: string | null;
}

/** What of a provider's metadata is needed. */
interface Metadata {
  readonly issuer: string;
  readonly jwks_uri?: string | undefined;
  readonly id_token_signing_alg_values_supported?: string[] | undefined;
}

const MAX_AGE_SECONDS = 600;
const EVENT = "http://schemas.openid.net/event/backchannel-logout";

const payload = z
  .object({
    jti: z.string(),
    sub: z.string().optional(),
    sid: z.string().optional(),
    events: z.object({ [EVENT]: z.object({}) }),
    // An ID token must not be taken for a logout token.
    nonce: z.never().optional(),
  })
  .refine(({ sub, sid }) => sub !== undefined || sid !== undefined);

/** Verifies logout tokens (OpenID Connect Back-Channel Logout 1.0, section 2.6); each is accepted once. */
export class LogoutTokens {
  readonly #config: ProviderConfig;
  readonly #now: () => number;
  /** Ids of accepted tokens, by the time until which they would be accepted again. */
  readonly #used = new Map<string, number>();
  #keys: { readonly uri: string; readonly of: SigningKeys } | undefined;

  /** `now` returns milliseconds since 1970. */
  constructor(config: ProviderConfig, now: () => number) {
    this.#config = config;
    this.#now = now;
  }

  /** Throws a ProviderDenial if the token is invalid, and a ProviderUnavailable without the keys that would show it. */
  async read(token: string, metadata: Metadata): Promise<LoggedOut> {
    const { jwtVerify } = await import("jose");
    try {
      const verified = await jwtVerify(token, this.#keysOf(metadata).find, {
        issuer: metadata.issuer,
        audience: this.#config.client_id,
        algorithms: algorithmsOf(metadata),
        requiredClaims: ["iat", "jti"],
        maxTokenAge: MAX_AGE_SECONDS,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        currentDate: new Date(this.#now()),
      });
      const { jti, sub, sid } = payload.parse(verified.payload);
      this.#use(jti);
      return { sid: sid ?? null, subject: sub ?? null };
    } catch (error) {
      if (error instanceof IssuerUnavailable) {
        throw unavailable(this.#config, error.cause);
      }
      throw new ProviderDenial("The logout token is invalid.", error);
    }
  }

  #use(id: string): void {
    for (const [known, until] of this.#used) {
      if (until < this.#now()) {
        this.#used.delete(known);
      }
    }
    if (this.#used.has(id)) {
      throw new Error("the token was used before");
    }
    const lifeMs = (MAX_AGE_SECONDS + 2 * CLOCK_TOLERANCE_SECONDS) * 1000;
    this.#used.set(id, this.#now() + lifeMs);
  }

  #keysOf({ issuer, jwks_uri: uri }: Metadata): SigningKeys {
    if (uri === undefined) {
      throw new Error("the provider publishes no keys");
    }
    if (this.#keys?.uri !== uri) {
      const keys = new SigningKeys({
        issuer,
        jwksUri: uri,
        refreshAfterMs: REFRESH_KEYS_MS,
        keepMs: KEEP_KEYS_MS,
        now: this.#now,
      });
      this.#keys = { uri, of: keys };
    }
    return this.#keys.of;
  }
}

/** Those of ID tokens, without secrets shared with the client and without `none`. */
function algorithmsOf({
  id_token_signing_alg_values_supported: supported = ["RS256"],
}: Metadata): string[] {
  return supported.filter((each) => !/^(HS|none$)/i.test(each));
}
