import { HOUR_MS } from "../../core/duration.ts";
import type { Claims } from "../../core/tokens/claims.ts";
import { SigningKeys } from "../../core/tokens/signing-keys.ts";
import {
  IssuerUnavailable,
  TokenRejected,
} from "../../core/tokens/token-errors.ts";
import { ALGORITHMS, verifyToken } from "../../core/tokens/verify-token.ts";
import type { ProviderConfig } from "../../supervisor/sign-in/config.ts";
import {
  CLOCK_TOLERANCE_SECONDS,
  ProviderDenial,
  unavailable,
} from "./provider-errors.ts";

export const REFRESH_KEYS_MS = 600_000;
/** While the provider is unavailable. */
export const KEEP_KEYS_MS = HOUR_MS;

/** Verifies ID tokens that a provider gave to the commands of a user (`cli_client_id`). */
export class CommandTokens {
  readonly #config: ProviderConfig;
  readonly #keys: SigningKeys;
  readonly #now: () => number;

  /** `now` returns milliseconds since 1970. */
  constructor(config: ProviderConfig, now: () => number) {
    this.#config = config;
    this.#now = now;
    this.#keys = new SigningKeys({
      issuer: config.issuer,
      jwksUri: null,
      refreshAfterMs: REFRESH_KEYS_MS,
      keepMs: KEEP_KEYS_MS,
      now,
    });
  }

  /** The claims of an ID token; throws a ProviderDenial or a ProviderUnavailable. */
  async read(idToken: string): Promise<Claims & { readonly sub: string }> {
    const { issuer, cli_client_id: audience } = this.#config;
    if (audience === undefined) {
      throw new ProviderDenial(
        `Commands cannot sign in through "${this.#config.name}": set cli_client_id of it under sign_in in the supervisor's configuration.`,
      );
    }
    try {
      const rules = {
        issuer,
        audiences: [audience],
        algorithms: ALGORITHMS,
        leewayMs: CLOCK_TOLERANCE_SECONDS * 1000,
      };
      const { claims } = await verifyToken(
        idToken,
        rules,
        this.#keys,
        this.#now(),
      );
      return claims;
    } catch (error) {
      if (error instanceof TokenRejected) {
        const sentence = `${error.message} Run \`hearth login\` again.`;
        throw new ProviderDenial(sentence, error);
      }
      throw error instanceof IssuerUnavailable
        ? unavailable(this.#config, error.cause)
        : error;
    }
  }
}
