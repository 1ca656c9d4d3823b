import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type * as OpenIdClient from "openid-client";
import { recordOf } from "../core/json.ts";
import { MINUTE_MS } from "../core/duration.ts";
import type { CommandProvider } from "../console/sign-in/command-providers.ts";
import { codeOf, Failure, textOf } from "../core/failure.ts";
import { isLoopback } from "../core/loopback.ts";

/** What a provider gave to this machine for a signed-in user. Secret. */
export interface ProviderTokens {
  readonly idToken: string;
  readonly accessToken: string;
  /** null: the provider issues none. */
  readonly refreshToken: string | null;
}

/** Where a person signs in. */
export interface Invitation {
  readonly url: string;
  /** To enter there or to compare; null: none is needed. */
  readonly code: string | null;
}

const TIMEOUT_SECONDS = 15;
const BROWSER_MINUTES = 10;

/** A provider of OpenID Connect as the commands use it: as a public client, without a secret. Methods throw a Failure. */
export class CommandClient {
  readonly #view: CommandProvider;
  readonly #client: typeof OpenIdClient;
  readonly #configuration: OpenIdClient.Configuration;

  private constructor(
    view: CommandProvider,
    client: typeof OpenIdClient,
    configuration: OpenIdClient.Configuration,
  ) {
    this.#view = view;
    this.#client = client;
    this.#configuration = configuration;
  }

  static async open(view: CommandProvider): Promise<CommandClient> {
    const client = await import("openid-client");
    const configuration = await failing(view, () =>
      client.discovery(
        new URL(view.issuer),
        view.clientId,
        undefined,
        client.None(),
        {
          timeout: TIMEOUT_SECONDS,
          execute: [
            client.enableNonRepudiationChecks,
            ...(isLoopback(view.issuer) ? [client.allowInsecureRequests] : []),
          ],
        },
      ),
    );
    return new CommandClient(view, client, configuration);
  }

  /** Whether a person can sign in with a browser on any machine. */
  get hasDeviceFlow(): boolean {
    const { device_authorization_endpoint: endpoint } =
      this.#configuration.serverMetadata();
    return endpoint !== undefined;
  }

  /** Signs in with a browser on any machine (RFC 8628); `show` tells the person where. */
  async byDevice(show: (invitation: Invitation) => void) {
    const { scopes } = this.#view;
    return failing(this.#view, async () => {
      const started = await this.#client.initiateDeviceAuthorization(
        this.#configuration,
        { scope: scopes.join(" ") },
      );
      show({
        url: started.verification_uri_complete ?? started.verification_uri,
        code: started.user_code,
      });
      return this.#tokensOf(
        await this.#client.pollDeviceAuthorizationGrant(
          this.#configuration,
          started,
        ),
      );
    });
  }

  /** Signs in with a browser on this machine, which the provider sends back to a port of it (RFC 8252). */
  async byBrowser(show: (invitation: Invitation) => void) {
    const client = this.#client;
    const verifier = client.randomPKCECodeVerifier();
    const [state, nonce] = [client.randomState(), client.randomNonce()];
    const loopback = await listenOnce(state);
    try {
      const url = client.buildAuthorizationUrl(this.#configuration, {
        redirect_uri: loopback.address,
        scope: this.#view.scopes.join(" "),
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
      show({ url: url.href, code: null });
      const answer = await loopback.answer;
      return await failing(this.#view, async () =>
        this.#tokensOf(
          await client.authorizationCodeGrant(this.#configuration, answer, {
            expectedState: state,
            expectedNonce: nonce,
            pkceCodeVerifier: verifier,
            idTokenExpected: true,
          }),
        ),
      );
    } finally {
      loopback.close();
    }
  }

  async refresh(tokens: ProviderTokens): Promise<ProviderTokens> {
    const { refreshToken } = tokens;
    if (refreshToken === null) {
      throw new Failure(
        `${this.#view.title} gives no refresh token: run \`hearth login\` again.`,
      );
    }
    return failing(this.#view, async () =>
      this.#tokensOf(
        await this.#client.refreshTokenGrant(this.#configuration, refreshToken),
        tokens,
      ),
    );
  }

  /** Revokes the refresh token and with it, at most providers, what it gave; false if the provider cannot. */
  async revoke({ refreshToken, accessToken }: ProviderTokens) {
    const { revocation_endpoint: endpoint } =
      this.#configuration.serverMetadata();
    if (endpoint === undefined) {
      return false;
    }
    await failing(this.#view, () =>
      this.#client.tokenRevocation(
        this.#configuration,
        refreshToken ?? accessToken,
      ),
    );
    return true;
  }

  #tokensOf(
    answer: OpenIdClient.TokenEndpointResponse,
    before?: ProviderTokens,
  ): ProviderTokens {
    // A provider need not send these again.
    const idToken = answer.id_token ?? before?.idToken;
    if (idToken === undefined) {
      throw new Failure(
        `${this.#view.title} sent no ID token: the scope openid must be allowed for the client ${this.#view.clientId}.`,
      );
    }
    return {
      idToken,
      accessToken: answer.access_token,
      refreshToken: answer.refresh_token ?? before?.refreshToken ?? null,
    };
  }
}

const PAGE = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Hearth</title><p>Continue in the terminal. This page can be closed.</p>`;

interface Loopback {
  readonly address: string;
  /** Where the provider sent the browser. */
  readonly answer: Promise<URL>;
  readonly close: () => void;
}

/** A port of this machine for one answer of the provider; requests without `state` are not answers. */
async function listenOnce(state: string): Promise<Loopback> {
  let answered: (url: URL) => void = () => undefined;
  let failed: (error: Failure) => void = () => undefined;
  const answer = new Promise<URL>((resolve, reject) => {
    [answered, failed] = [resolve, reject];
  });
  // Awaited later, and never if the sign-in fails before.
  answer.catch(() => undefined);
  let address = "";
  const server: Server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", address);
    const isAnswer =
      url.pathname === "/callback" && url.searchParams.get("state") === state;
    response.writeHead(isAnswer ? 200 : 404, {
      "content-type": "text/html; charset=utf-8",
      connection: "close",
    });
    response.end(isAnswer ? PAGE : "");
    if (isAnswer) {
      answered(url);
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", resolve);
  });
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`;
  const timer = setTimeout(
    () =>
      failed(
        new Failure(
          `no sign-in within ${BROWSER_MINUTES} minutes: run \`hearth login\` again.`,
        ),
      ),
    BROWSER_MINUTES * MINUTE_MS,
  );
  return {
    address,
    answer,
    close: () => {
      clearTimeout(timer);
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Every error of the provider as a sentence that says what to do next. */
async function failing<Result>(
  { title, clientId }: CommandProvider,
  act: () => Promise<Result>,
): Promise<Result> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof Failure) {
      throw error;
    }
    switch (oauthErrorOf(error)) {
      case "access_denied":
        throw new Failure(
          `${title} did not sign you in (access_denied): run \`hearth login\` to try again.`,
          error,
        );
      case "expired_token":
        throw new Failure(
          "the code expired before a sign-in: run `hearth login` again.",
          error,
        );
      case "invalid_grant":
        throw new Failure(
          `the sign-in at ${title} has ended: run \`hearth login\` again.`,
          error,
        );
      case undefined:
        throw new Failure(
          `${title} is unavailable (${reasonOf(error)}): try again later.`,
          error,
        );
      default:
        throw new Failure(
          `${title} rejects the client ${clientId} (${oauthErrorOf(error)}): register it there as a public client with the device flow and the redirect URI http://127.0.0.1/callback.`,
          error,
        );
    }
  }
}

/** The error code of an answer of the provider, such as `access_denied`. */
function oauthErrorOf(error: unknown): string | undefined {
  const code = recordOf(error)["error"];
  return typeof code === "string" && /^[a-z_]{1,40}$/.test(code)
    ? code
    : undefined;
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return codeOf(cause) ?? textOf(error);
}
