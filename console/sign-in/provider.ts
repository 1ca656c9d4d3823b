import type * as OpenIdClient from "openid-client";
import { HOUR_MS } from "../../core/duration.ts";
import { isLoopback } from "../../core/loopback.ts";
import type { Claims } from "../../core/tokens/claims.ts";
import type { ProviderConfig } from "../../supervisor/sign-in/config.ts";
import { CommandTokens } from "./command-tokens.ts";
import { LogoutTokens, type LoggedOut } from "./logout-tokens.ts";
import type { PendingSignIn } from "./pending-sign-ins.ts";
import {
  CLOCK_TOLERANCE_SECONDS,
  ProviderDenial,
  providerError,
  ProviderUnavailable,
  unavailable,
} from "./provider-errors.ts";

/** What a provider gave for a signed-in user. Secret, except `subject` and `sid`. */
export interface Grant {
  readonly subject: string;
  /** The user's session at the provider; null if it does not tell. */
  readonly sid: string | null;
  readonly claims: Claims;
  /** Names of the claims that the last userinfo response had. */
  readonly userInfoNames: readonly string[];
  readonly accessToken: string;
  readonly refreshToken: string | null;
  readonly idToken: string;
}

const TIMEOUT_SECONDS = 5;
const CURRENT_MS = HOUR_MS;

interface Discovered {
  readonly client: typeof OpenIdClient;
  readonly configuration: OpenIdClient.Configuration;
  readonly at: number;
}

/**
 * A provider of OpenID Connect: the authorization code flow with PKCE, state and nonce. Nothing is requested or loaded before
 * the first sign-in. Methods throw a ProviderUnavailable or a ProviderDenial.
 */
export class Provider {
  readonly config: ProviderConfig;
  readonly #now: () => number;
  #discovered: Discovered | undefined;
  #discovery: Promise<Discovered> | undefined;
  #logoutTokens: LogoutTokens | undefined;
  readonly #commandTokens: CommandTokens;
  #trouble: { readonly sentence: string; readonly at: number } | undefined;

  /** `now` returns milliseconds since 1970. */
  constructor(config: ProviderConfig, now: () => number) {
    this.config = config;
    this.#now = now;
    this.#commandTokens = new CommandTokens(config, now);
  }

  /** Why the last request to it failed, and when; undefined after a successful one. */
  get trouble():
    { readonly sentence: string; readonly at: number } | undefined {
    return this.#trouble;
  }

  /** Where to send the browser. */
  async authorizationUrl(
    { redirectUri, nonce, verifier }: PendingSignIn,
    state: string,
  ): Promise<string> {
    // Asked again, so that a provider that is down is noticed before the browser is sent there.
    const { client, configuration } = await this.#discover(0);
    return client.buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: this.config.scopes.join(" "),
      response_type: "code",
      state,
      nonce,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    }).href;
  }

  /** Exchanges the code in `query`, the provider's answer, for tokens. */
  async grant(
    pending: PendingSignIn,
    state: string,
    query: URLSearchParams,
  ): Promise<Grant> {
    const { client, configuration } = await this.#discover(CURRENT_MS);
    const tokens = await this.#request(client, "tokens", () =>
      client.authorizationCodeGrant(
        configuration,
        new URL(`${pending.redirectUri}?${query.toString()}`),
        {
          expectedState: state,
          expectedNonce: pending.nonce,
          pkceCodeVerifier: pending.verifier,
          idTokenExpected: true,
        },
      ),
    );
    const claims = tokens.claims();
    if (claims === undefined || tokens.id_token === undefined) {
      throw new ProviderDenial("The provider sent no ID token.");
    }
    return this.#withUserInfo({
      subject: claims.sub,
      sid: typeof claims["sid"] === "string" ? claims["sid"] : null,
      claims,
      userInfoNames: [],
      accessToken: tokens.access_token,
      refreshToken: tokens.refresh_token ?? null,
      idToken: tokens.id_token,
    });
  }

  /** Verifies the tokens that a user's commands got from the provider, and asks for the current claims. */
  async grantOfCommands(idToken: string, accessToken: string): Promise<Grant> {
    const claims = await this.#commandTokens.read(idToken);
    return this.#withUserInfo({
      subject: claims.sub,
      sid: typeof claims["sid"] === "string" ? claims["sid"] : null,
      claims,
      userInfoNames: [],
      accessToken,
      refreshToken: null,
      idToken,
    });
  }

  /** Asks for the current claims: with a refresh token for new tokens, else only with the access token while it is valid. */
  async confirm(grant: Grant): Promise<Grant> {
    const { refreshToken } = grant;
    if (refreshToken === null) {
      return this.#withUserInfo(grant);
    }
    // Asked again, and with it for its keys: many refresh tokens are valid once, and lost if the answer cannot be verified.
    const { client, configuration } = await this.#discover(0);
    const tokens = await this.#request(client, "tokens", () =>
      client.refreshTokenGrant(configuration, refreshToken),
    );
    const claims = tokens.claims();
    if (claims !== undefined && claims.sub !== grant.subject) {
      throw new ProviderDenial("The provider confirmed another user.");
    }
    return this.#withUserInfo({
      ...grant,
      // A provider need not send an ID token again.
      ...(claims !== undefined && { claims, userInfoNames: [] }),
      accessToken: tokens.access_token,
      refreshToken: tokens.refresh_token ?? refreshToken,
      idToken: tokens.id_token ?? grant.idToken,
    });
  }

  /** Where the browser signs out of the provider; undefined if it has no such page or is unavailable. */
  async endSessionUrl(
    idToken: string,
    returnTo: string,
  ): Promise<string | undefined> {
    try {
      const { client, configuration } = await this.#discover(CURRENT_MS);
      return configuration.serverMetadata().end_session_endpoint === undefined
        ? undefined
        : client.buildEndSessionUrl(configuration, {
            id_token_hint: idToken,
            post_logout_redirect_uri: returnTo,
          }).href;
    } catch (error) {
      if (error instanceof ProviderUnavailable) {
        return undefined;
      }
      throw error;
    }
  }

  /** Verifies a token of the back channel; a ProviderDenial if it is invalid. */
  async readLogoutToken(token: string): Promise<LoggedOut> {
    const { configuration } = await this.#discover(CURRENT_MS);
    this.#logoutTokens ??= new LogoutTokens(this.config, this.#now);
    return this.#logoutTokens.read(token, configuration.serverMetadata());
  }

  /** The userinfo response replaces claims of the ID token; some providers list groups only there. */
  async #withUserInfo(grant: Grant): Promise<Grant> {
    const { client, configuration } = await this.#discover(CURRENT_MS);
    if (configuration.serverMetadata().userinfo_endpoint === undefined) {
      if (grant.refreshToken === null) {
        throw new ProviderDenial(
          "The provider cannot confirm a sign-in. Sign in again.",
        );
      }
      return grant;
    }
    const userInfo = await this.#request(client, "claims", () =>
      client.fetchUserInfo(configuration, grant.accessToken, grant.subject),
    );
    // Some providers leave out what has become empty, such as the last group.
    const left = Object.entries(grant.claims).filter(
      ([name]) => !grant.userInfoNames.includes(name),
    );
    return {
      ...grant,
      claims: { ...Object.fromEntries(left), ...userInfo },
      userInfoNames: Object.keys(userInfo),
    };
  }

  async #request<Answer>(
    client: typeof OpenIdClient,
    what: "tokens" | "claims",
    act: () => Promise<Answer>,
  ): Promise<Answer> {
    try {
      const answer = await act();
      this.#trouble = undefined;
      return answer;
    } catch (error) {
      throw this.#noticed(providerError(client, this.config, error, what));
    }
  }

  #noticed<T extends Error>(error: T): T {
    this.#trouble =
      error instanceof ProviderUnavailable
        ? { sentence: error.message, at: this.#now() }
        : undefined;
    return error;
  }

  /** What is known of the provider, at most this old. */
  async #discover(maxAgeMs: number): Promise<Discovered> {
    const known = this.#discovered;
    const age = this.#now() - (known?.at ?? 0);
    if (known !== undefined && age >= 0 && age < maxAgeMs) {
      return known;
    }
    this.#discovery ??= this.#load().finally(() => {
      this.#discovery = undefined;
    });
    return this.#discovery;
  }

  async #load(): Promise<Discovered> {
    const client = await import("openid-client");
    const { issuer, client_id, client_secret } = this.config;
    const server = new URL(issuer);
    try {
      const configuration = await client.discovery(
        server,
        client_id,
        { [client.clockTolerance]: CLOCK_TOLERANCE_SECONDS },
        clientAuthentication(client, client_secret),
        {
          timeout: TIMEOUT_SECONDS,
          execute: [
            client.enableNonRepudiationChecks,
            ...(isLoopback(issuer) ? [client.allowInsecureRequests] : []),
          ],
        },
      );
      this.#discovered = { client, configuration, at: this.#now() };
      return this.#discovered;
    } catch (error) {
      throw this.#noticed(unavailable(this.config, error));
    }
  }
}

/** Basic authentication, the default of OpenID Connect, unless the provider supports only the other one. */
function clientAuthentication(
  client: typeof OpenIdClient,
  secret: string | undefined,
): OpenIdClient.ClientAuth {
  if (secret === undefined) {
    return client.None();
  }
  const [basic, post] = [
    client.ClientSecretBasic(secret),
    client.ClientSecretPost(secret),
  ];
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported;
    const authenticate =
      methods === undefined || methods.includes("client_secret_basic")
        ? basic
        : post;
    return authenticate(server, ...rest);
  };
}
