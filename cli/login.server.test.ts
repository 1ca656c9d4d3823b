import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  expect,
  test,
  vi,
} from "vitest";
import { registerGatewayRoutes } from "../console/http/gateway-routes.ts";
import { sentencesOf } from "../core/failure.ts";
import { openAdminApi } from "../supervisor/gateway/admin-api.ts";
import { openHistory, type History } from "../supervisor/history/history.ts";
import { signInSchema } from "../supervisor/sign-in/config.ts";
import { startAdminFixture, type AdminFixture } from "../test/servers/admin.ts";
import { MASTER_KEY } from "../test/servers/gateway.ts";
import {
  CLI_CLIENT,
  CLIENT,
  startOpenIdProvider,
  type OpenIdProvider,
} from "../test/servers/openid-provider.ts";
import { startTokenIssuer } from "../test/servers/token-issuer.ts";
import { WebClient } from "../test/servers/web-client.ts";
import { buildTestApi } from "../test/supervisor/console-api.ts";
import { asOperator } from "../test/supervisor/operator.ts";
import { temporaryHome } from "../test/supervisor/temporary-home.ts";
import { hearth as commands } from "./main.ts";
import { runVerb } from "./verb.ts";

let place: ReturnType<typeof temporaryHome>;
let history: History;
let provider: OpenIdProvider;
let gateway: AdminFixture;
let api: FastifyInstance;
let address: string;
let config: object;

beforeAll(async () => {
  place = temporaryHome();
  history = openHistory(`${place.directory}/history.db`);
  const started = await startOpenIdProvider();
  provider = started.provider;
  gateway = await startAdminFixture(`
jwt:
  - { name: home, issuer: ${provider.issuer}, audience: ${CLI_CLIENT}, create_users: true }
`);
  config = {
    name: "home",
    title: "Our account",
    issuer: provider.issuer,
    client_id: CLIENT.id,
    client_secret: CLIENT.secret,
    cli_client_id: CLI_CLIENT,
    scopes: ["openid", "profile", "email", "groups"],
    roles: { map: { crew: "viewer", captains: "admin" } },
  };
  api = consoleWith([config]);
  address = await api.listen({ host: "127.0.0.1", port: 0 });
  started.open(address, "home");
});
afterAll(async () => {
  await api.close();
  await provider.stop();
  await gateway.stop();
  history.close();
  place.remove();
});
beforeEach(() => {
  vi.stubEnv("HEARTH_HOME", join(place.directory, `${++homes}`));
  vi.stubEnv("HEARTH_URL", "");
  provider.refreshes = true;
  provider.accounts.clear();
  provider.accounts.set("anna", {
    email: "anna@example.org",
    email_verified: true,
    groups: ["captains"],
  });
  provider.accounts.set("bert", {
    preferred_username: "bert",
    groups: ["crew"],
  });
  provider.accounts.set("carl", { groups: ["guests"] });
});
afterEach(() => {
  vi.unstubAllEnvs();
});

let homes = 0;

/** The gateway, as the console asks it. */
function gatewayApi() {
  return openAdminApi({
    address: gateway.url,
    credential: () => MASTER_KEY,
    timeoutMs: 5000,
  });
}

function consoleWith(
  providers: readonly object[],
  atGateway = gatewayApi(),
): FastifyInstance {
  const server = buildTestApi({
    history,
    gateway: gatewayApi(),
    providers: signInSchema.parse(providers),
  });
  registerGatewayRoutes(server, atGateway, gateway.url);
  return server;
}

/** Runs a command in this process; `onOutput` gets what it has printed so far. */
async function hearth(
  words: readonly string[],
  onOutput: (text: string) => void = () => undefined,
) {
  let [out, error] = ["", ""];
  const stdout = vi.spyOn(process.stdout, "write");
  stdout.mockImplementation((text) => {
    out += String(text);
    return true;
  });
  const stderr = vi.spyOn(process.stderr, "write");
  stderr.mockImplementation((text) => {
    error += String(text);
    onOutput(error);
    return true;
  });
  try {
    const code = await runVerb(commands, words);
    return { code, out, error };
  } catch (failure) {
    const sentences = sentencesOf(failure).join("\n");
    return { code: 1, out, error: `${error}${sentences}` };
  } finally {
    stdout.mockRestore();
    stderr.mockRestore();
  }
}

/** Goes through the provider's forms as a person with a browser. */
async function visitAs(login: string, url: string): Promise<string> {
  const browser = new WebClient();
  let { url: at, body } = await browser.visit(url);
  for (let forms = 0; forms < 6; forms++) {
    const [, action] = /<form[^>]* action="([^"]+)"/.exec(body) ?? [];
    if (action === undefined) {
      return body;
    }
    const hidden = [
      ...body.matchAll(/type="hidden" name="([^"]+)" value="([^"]*)"/g),
    ].map(([, name = "", value = ""]) => [name, value] as const);
    const isLogin = body.includes('name="login"');
    const fields = {
      ...Object.fromEntries(hidden),
      ...(isLogin ? { login } : { confirm: "yes" }),
    };
    ({ url: at, body } = await browser.visit(
      new URL(action.replaceAll("&amp;", "&"), at).href,
      fields,
    ));
  }
  throw new Error(`no end of forms: ${body}`);
}

/** Runs `hearth login` and signs in at the address that it prints. */
async function logIn(account: string, ...more: readonly string[]) {
  const visit = Promise.withResolvers<never>();
  let isVisited = false;
  const ended = hearth(["login", "--url", address, ...more], (printed) => {
    const url = /^ {2}(http\S+)\n/m.exec(printed)?.[1];
    if (url !== undefined && !isVisited) {
      isVisited = true;
      visitAs(account, url).catch(visit.reject);
    }
  });
  return Promise.race([ended, visit.promise]);
}

function storedLogin() {
  const path = join(process.env["HEARTH_HOME"] ?? "", "logins.json");
  const { logins } = JSON.parse(readFileSync(path, "utf8")) as {
    logins: {
      session: { token: string };
      tokens: { idToken: string; accessToken: string; refreshToken: string };
    }[];
  };
  return { path, logins };
}

const statusWith = async (token: string) =>
  (
    await fetch(`${address}/api/me`, {
      headers: { authorization: `Bearer ${token}` },
    })
  ).status;

test("a person signs in with a code on any machine; commands act with that person's name and role", async () => {
  const { code, out, error } = await logIn("anna");
  expect([code, out]).toEqual([
    0,
    `Signed in at ${address} as anna@example.org (home), with the role admin.\n`,
  ]);
  expect(error).toMatch(
    /Sign in at Our account .* check that it shows the code [A-Z-]+:/,
  );
  const { path } = storedLogin();
  expect(statSync(path).mode & 0o777).toBe(0o600);
  // Without an address, the console of the latest login is meant.
  expect((await hearth(["whoami"])).out).toMatch(
    /^anna@example.org \(home\), with the role admin, at .*\nSigned in through Our account .* the session ends/,
  );
  const made = await hearth(["keys", "new", "--alias", "by-command"]);
  expect([made.code, made.error]).toEqual([0, ""]);
  expect(made.out).toMatch(/^sk-.*\n/);
  expect(made.out).toContain(`${gateway.url}/v1/chat/completions`);
  const changes = await gateway.get("/audit?object_type=key");
  expect(changes).toMatchObject([{ actor: "anna@example.org (home)" }]);
  expect((await hearth(["keys", "list"])).out).toContain("by-command");
});

test("with a browser on this machine no code is needed, and a viewer changes nothing", async () => {
  const { code, error } = await logIn("bert", "--browser");
  expect([code, error]).toEqual([
    0,
    expect.stringContaining("in a browser on this machine"),
  ]);
  expect(JSON.parse((await hearth(["whoami", "--json"])).out)).toMatchObject({
    name: "bert (home)",
    role: "viewer",
    provider: "home",
  });
  expect((await hearth(["keys", "list"])).code).toBe(0);
  for (const words of [
    ["keys", "new", "--alias", "denied"],
    ["check", "gateway"],
    ["sign-out", "--all", "--url", address],
  ]) {
    const denied = await hearth(words);
    expect([denied.code, denied.error]).toEqual([
      1,
      expect.stringMatching(
        /requires the role (admin|operator); bert \(home\)/,
      ),
    ]);
  }
});

test("a path in another spelling never reaches another host with the master key", async () => {
  await logIn("anna", "--browser");
  const { token = "" } = storedLogin().logins[0]?.session ?? {};
  const asked: string[] = [];
  const other = consoleWith([config], {
    address: gateway.url,
    ask: async (_method, path) => {
      asked.push(path);
      return {};
    },
    stream: () => {
      throw new Error("not used");
    },
    as: () => {
      throw new Error("not used");
    },
    actingFor: () => {
      throw new Error("not used");
    },
  });
  const headers = { authorization: `Bearer ${token}` };
  const statusAt = async (method: "GET" | "POST", url: string) =>
    (await other.inject({ method, url, headers })).statusCode;
  // The session is one of the history that both consoles share, read at the start of this one.
  expect(await statusAt("GET", "/api/gateway/key/list?size=1")).toBe(200);
  expect(await statusAt("GET", "/%61pi/gateway/key/lis%74?size=2")).toBe(200);
  expect(await statusAt("GET", "/api/gateway/audit?x=1")).toBe(200);
  expect(await statusAt("GET", "/%61pi/gateway/audit")).toBe(404);
  expect(await statusAt("POST", "/%61pi/gateway/.example.org/x")).toBe(404);
  expect(asked).toEqual(["/key/list?size=1", "/key/list?size=2", "/audit?x=1"]);
  await other.close();
});

test("a session that has ended is renewed once, also by commands at the same time", async () => {
  await logIn("anna", "--browser");
  const before = storedLogin().logins[0];
  await fetch(`${address}/api/sign-out-all`, {
    method: "POST",
    headers: asOperator,
  });
  expect(await statusWith(before?.session.token ?? "")).toBe(401);
  const { UserLogins } = await import("./user-login.ts");
  const logins = new UserLogins({ root: process.env["HEARTH_HOME"] ?? "" });
  const expired = logins.find(address);
  if (expired === undefined) {
    throw new Error("not logged in");
  }
  const renewed = await Promise.all([1, 2].map(() => logins.renew(expired)));
  expect(new Set(renewed.map(({ session }) => session.token)).size).toBe(1);
  expect((await hearth(["whoami"])).out).toContain("anna@example.org (home)");
  expect(storedLogin().logins[0]?.tokens.refreshToken).not.toBe(
    before?.tokens.refreshToken,
  );
});

test("a user who was deleted at the provider has to sign in again", async () => {
  await logIn("anna", "--browser");
  const { token = "" } = storedLogin().logins[0]?.session ?? {};
  provider.accounts.delete("anna");
  await fetch(`${address}/api/sign-in`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${token}` },
  });
  const { code, error } = await hearth(["keys", "list"]);
  expect([code, error]).toEqual([
    1,
    "the sign-in at Our account has ended: run `hearth login` again.",
  ]);
});

test("logging out ends the session and the tokens, here, at the console and at the provider", async () => {
  await logIn("anna", "--browser");
  const [login] = storedLogin().logins;
  const { token = "" } = login?.session ?? {};
  expect(await statusWith(token)).toBe(200);
  const { code, out, error } = await hearth(["logout"]);
  expect([code, out, error]).toEqual([
    0,
    `Signed out of ${address} (anna@example.org (home)).\n`,
    "",
  ]);
  expect(storedLogin().logins).toEqual([]);
  expect(await statusWith(token)).toBe(401);
  const refreshed = await fetch(`${provider.issuer}/token`, {
    method: "POST",
    body: new URLSearchParams({
      grant_type: "refresh_token",
      client_id: CLI_CLIENT,
      refresh_token: login?.tokens.refreshToken ?? "",
    }),
  });
  expect(await refreshed.json()).toMatchObject({ error: "invalid_grant" });
  expect((await hearth(["logout"])).out).toBe("Not signed in.\n");
  expect((await hearth(["whoami", "--url", address])).error).toMatch(
    /requires the operator password.*hearth login/,
  );
});

test("the provider's ID token calls models, too, where the gateway accepts its issuer", async () => {
  await logIn("bert", "--browser");
  const { idToken = "" } = storedLogin().logins[0]?.tokens ?? {};
  expect((await gateway.chat(idToken, "Hello")).status).toBe(200);
  expect(await gateway.get("/me/usage", idToken)).toMatchObject({
    key: { key_alias: "bert (home)", user_id: "bert" },
  });
});

test("an account without a role is denied by the console", async () => {
  const { code, error } = await logIn("carl", "--browser");
  expect([code, error]).toEqual([
    1,
    expect.stringContaining("carl (home) has no role in this console."),
  ]);
});

test("the console accepts only the provider's tokens for its commands, both of one account", async () => {
  await logIn("anna", "--browser");
  const [anna] = storedLogin().logins;
  await logIn("bert", "--browser");
  const [bert] = storedLogin().logins;
  const other = await startTokenIssuer();
  const exchange = async (fields: object) => {
    const answer = await fetch(`${address}/api/sign-in`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        provider: "home",
        idToken: anna?.tokens.idToken,
        accessToken: anna?.tokens.accessToken,
        ...fields,
      }),
    });
    return answer.status;
  };
  expect(await exchange({})).toBe(200);
  const idToken = anna?.tokens.idToken ?? "";
  for (const wrong of [
    { accessToken: bert?.tokens.accessToken },
    { accessToken: "another" },
    { idToken: idToken.slice(0, -6) + "AAAAAA" },
    { idToken: other.token({ iss: provider.issuer, aud: CLI_CLIENT }) },
    { idToken: other.token({ aud: CLI_CLIENT }) },
    { provider: "elsewhere" },
  ]) {
    expect([wrong, await exchange(wrong)]).toEqual([wrong, 403]);
  }
  expect(await exchange({ accessToken: 1 })).toBe(400);
  await other.down();
});

test.each([
  [[], /^Sign-in for commands is not configured at .*: set cli_client_id/],
  [["no-cli"], /^Sign-in for commands is not configured at/],
  [["one", "two"], /^choose a provider: add --provider one or --provider two/],
])(
  "with the providers %j one sentence says what to do",
  async (names, says) => {
    const other = consoleWith(
      names.map((name) => ({
        ...config,
        name,
        ...(name === "no-cli" ? { cli_client_id: undefined } : {}),
      })),
    );
    const url = await other.listen({ host: "127.0.0.1", port: 0 });
    const { error } = await hearth(["login", "--url", url]);
    expect(error).toMatch(says);
    await other.close();
  },
);

test("an ID token of the browser's client is not accepted from commands", async () => {
  const { CommandTokens } =
    await import("../console/sign-in/command-tokens.ts");
  const issuer = await startTokenIssuer();
  const [entry] = signInSchema.parse([{ ...config, issuer: issuer.issuer }]);
  if (entry === undefined) {
    throw new Error("no provider");
  }
  const tokens = new CommandTokens(entry, Date.now);
  expect(await tokens.read(issuer.token({ aud: CLI_CLIENT }))).toMatchObject({
    sub: "anna",
  });
  await expect(tokens.read(issuer.token({ aud: CLIENT.id }))).rejects.toThrow(
    /another audience.*hearth login/,
  );
  await issuer.down();
  await expect(
    new CommandTokens(entry, Date.now).read(issuer.token({ aud: CLI_CLIENT })),
  ).rejects.toThrow(/Our account is unavailable \([A-Z_]+\)/);
});

test("tokens are not sent to a console that others on the network could read", async () => {
  const { error } = await hearth(["login", "--url", "http://192.0.2.1:4080"]);
  expect(error).toMatch(/is not an https address/);
});
