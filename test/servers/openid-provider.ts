import { AsyncLocalStorage } from "node:async_hooks";
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { text } from "node:stream/consumers";
import { Provider, type Configuration } from "oidc-provider";
import { freePort, listen } from "./ports.ts";

/** A user of the provider; without one, the account is blocked or removed. */
type Account = Readonly<Record<string, unknown>>;

export const CLIENT = { id: "hearth", secret: "the-secret-of-the-client" };

/** The client of the commands, which have no secret. */
export const CLI_CLIENT = "hearth-cli";

/** A real provider of OpenID Connect (npm oidc-provider) with a sign-in form that asks only for a name. */
export interface OpenIdProvider {
  readonly issuer: string;
  /** Claims by name of the account. */
  readonly accounts: Map<string, Account>;
  /** How far the provider's clock is ahead, in milliseconds. */
  clockAheadMs: number;
  /** How long ID tokens are valid, in seconds. */
  idTokenSeconds: number;
  /** Whether it issues refresh tokens. */
  refreshes: boolean;
  /** Stops answering; `up` answers at the same address again. */
  readonly down: () => Promise<void>;
  readonly up: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** Listens before the console does, whose addresses `open` registers. `host` is 127.0.0.1, or localhost for another site. */
export async function startOpenIdProvider(
  host: "127.0.0.1" | "localhost" = "127.0.0.1",
): Promise<{
  readonly provider: OpenIdProvider;
  readonly open: (console: string, name: string) => void;
}> {
  let listener: Listener = (_request, response) => response.end();
  const clock = shiftableClock();
  const server = createServer((request, response) =>
    clock.run(provider.clockAheadMs, () => listener(request, response)),
  );
  const port = await listen(server, { port: await freePort(), host });
  const provider: OpenIdProvider = {
    issuer: `http://${host}:${port}`,
    accounts: new Map(),
    clockAheadMs: 0,
    idTokenSeconds: 3600,
    refreshes: true,
    down: () => closeServer(server),
    up: async () => void (await listen(server, { port, host })),
    stop: async () => {
      clock.restore();
      await closeServer(server);
    },
  };
  return {
    provider,
    open: (console, name) => {
      listener = handle(
        new Provider(provider.issuer, configure(provider, console, name)),
      );
    },
  };
}

type Listener = (request: IncomingMessage, response: ServerResponse) => unknown;

function configure(
  provider: OpenIdProvider,
  console: string,
  name: string,
): Configuration {
  const { accounts } = provider;
  return {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        grant_types: ["authorization_code", "refresh_token"],
        redirect_uris: [`${console}/sign-in/with/${name}/callback`],
        post_logout_redirect_uris: [`${console}/`],
        backchannel_logout_uri: `${console}/sign-in/with/${name}/logout`,
        backchannel_logout_session_required: true,
      },
      {
        client_id: CLI_CLIENT,
        application_type: "native",
        token_endpoint_auth_method: "none",
        grant_types: [
          "authorization_code",
          "refresh_token",
          "urn:ietf:params:oauth:grant-type:device_code",
        ],
        redirect_uris: ["http://127.0.0.1/callback"],
      },
    ],
    cookies: { keys: ["a-key-of-the-cookies"] },
    findAccount: (_context, id) => {
      const claims = accounts.get(id);
      return (
        claims && { accountId: id, claims: () => ({ sub: id, ...claims }) }
      );
    },
    claims: {
      openid: ["sub"],
      profile: ["preferred_username"],
      email: ["email", "email_verified"],
      groups: ["groups"],
    },
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      deviceFlow: {
        enabled: true,
        userCodeInputSource: (context, form) => {
          context.body = page(form);
        },
        userCodeConfirmSource: (context, form) => {
          context.body = page(form);
        },
        successSource: (context) => {
          context.body = page("Signed in");
        },
      },
      revocation: { enabled: true },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: (context, form) => {
          context.body = `<!doctype html><title>Sign out</title>${form}<button form="op.logoutForm" name="logout" value="yes">Sign out</button>`;
        },
      },
    },
    // Without the protection against addresses of this machine.
    fetch: (url, options) => fetch(url, { ...options, dispatcher: undefined }),
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    issueRefreshToken: async () => provider.refreshes,
    loadExistingGrant: async (context) => {
      const { client, session, params } = context.oidc;
      const grant = new context.oidc.provider.Grant({
        clientId: client?.clientId ?? "",
        accountId: session?.accountId ?? "",
      });
      grant.addOIDCScope(String(params?.["scope"]));
      await grant.save();
      return grant;
    },
    rotateRefreshToken: true,
    ttl: {
      AccessToken: 3600,
      AuthorizationCode: 60,
      Grant: 86_400,
      IdToken: () => provider.idTokenSeconds,
      Interaction: 600,
      RefreshToken: 86_400,
      Session: 86_400,
    },
  };
}

function page(content: string): string {
  return `<!doctype html><title>Device</title>${content}`;
}

function handle(provider: Provider): Listener {
  const callback = provider.callback();
  return async (request, response) => {
    if (!request.url?.startsWith("/interaction/")) {
      return callback(request, response);
    }
    if (request.method === "POST") {
      const sent = new URLSearchParams(await text(request));
      return provider.interactionFinished(request, response, {
        login: { accountId: sent.get("login") ?? "" },
        // Native clients always ask for it.
        consent: {},
      });
    }
    response.setHeader("content-type", "text/html");
    return response.end(
      `<!doctype html><title>Provider</title><form method="post" action="${request.url}"><label>Name <input name="login"></label><button>Continue</button></form>`,
    );
  };
}

/** Shifts Date.now within what a function starts, so that one process has two clocks. */
function shiftableClock() {
  const shift = new AsyncLocalStorage<number>();
  const { now } = Date;
  Date.now = () => now() + (shift.getStore() ?? 0);
  return {
    run: <Result>(ms: number, act: () => Result) => shift.run(ms, act),
    restore: () => {
      Date.now = now;
    },
  };
}

function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
