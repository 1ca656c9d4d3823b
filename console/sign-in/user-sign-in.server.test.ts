import type { FastifyInstance } from "fastify";
import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  test,
} from "vitest";
import { MINUTE_MS } from "../../core/duration.ts";
import { byAuthor, currentAuthor } from "../../supervisor/history/author.ts";
import { openHistory, type History } from "../../supervisor/history/history.ts";
import {
  signInSchema,
  type ProviderConfig,
} from "../../supervisor/sign-in/config.ts";
import {
  CLIENT,
  startOpenIdProvider,
  type OpenIdProvider,
} from "../../test/servers/openid-provider.ts";
import { WebClient } from "../../test/servers/web-client.ts";
import { buildTestApi } from "../../test/supervisor/console-api.ts";
import { asOperator, testCredentials } from "../../test/supervisor/operator.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";

let place: ReturnType<typeof temporaryHome>;
let history: History;
let provider: OpenIdProvider;
let api: FastifyInstance;
let address: string;
let aheadMs = 0;
let browser: WebClient;

beforeAll(async () => {
  place = temporaryHome();
  history = openHistory(`${place.directory}/history.db`);
  const started = await startOpenIdProvider();
  provider = started.provider;
  api = newApi(configsOf({}));
  address = await api.listen({ host: "127.0.0.1", port: 0 });
  started.open(address, "home");
});
afterAll(async () => {
  await api.close();
  await provider.stop();
  history.close();
  place.remove();
});
beforeEach(() => {
  browser = new WebClient();
  aheadMs = 0;
  provider.clockAheadMs = 0;
  provider.idTokenSeconds = 3600;
  provider.refreshes = true;
  provider.accounts.clear();
  provider.accounts.set("anna", {
    email: "anna@example.org",
    email_verified: true,
    groups: ["crew"],
  });
  provider.accounts.set("bert", {
    preferred_username: "bert",
    groups: ["captains"],
  });
  provider.accounts.set("carl", { groups: ["guests"] });
  history.db.exec("DELETE FROM events");
});

function configsOf(more: object): readonly ProviderConfig[] {
  return signInSchema.parse([
    {
      name: "home",
      title: "Our account",
      issuer: provider.issuer,
      client_id: CLIENT.id,
      client_secret: CLIENT.secret,
      scopes: ["openid", "profile", "email", "groups"],
      roles: {
        map: { crew: "viewer", officers: "operator", captains: "admin" },
      },
      ...more,
    },
  ]);
}

function newApi(
  providers: readonly ProviderConfig[],
  publicUrl?: string,
): FastifyInstance {
  const server = buildTestApi({
    history,
    publicUrl,
    providers,
    now: () => Date.now() + aheadMs,
  });
  server.get("/", (request) => ({ caller: request.requester }));
  server.post("/jobs/:name/run", async () => {
    await Promise.resolve();
    history.act("backup", "asked", `started ${byAuthor()}`);
    return { author: currentAuthor() };
  });
  return server;
}

/** Goes through the provider's form; returns the page at which it ends. */
async function signIn(login: string, to = "/", client = browser) {
  const form = await client.visit(
    `${address}/sign-in/with/home?to=${encodeURIComponent(to)}`,
  );
  expect(form.body).toContain("<title>Provider</title>");
  return client.visit(form.url, { login });
}

/** Who the console takes the browser for; undefined if it has to sign in. */
async function callerOf(client = browser) {
  const { status, body } = await client.visit(`${address}/`);
  return status === 200
    ? (JSON.parse(body) as { caller: unknown }).caller
    : undefined;
}

const anna = { role: "viewer", name: "anna@example.org (home)" };

test("the first sign-in leads to the requested page, with the role that the groups give", async () => {
  const { body } = await browser.visit(`${address}/jobs`);
  const [, link = ""] =
    /href="(\/sign-in\/with\/home[^"]*)">Sign in with Our account</.exec(
      body,
    ) ?? [];
  expect(link).toBe("/sign-in/with/home?to=%2Fjobs");
  const page = await signIn("anna", "/jobs");
  expect(page.url).toBe(`${address}/jobs`);
  expect(await callerOf()).toEqual(anna);
});

test.each([
  ["anna", 403, 403],
  ["bert", 200, 201],
])("%s may do what the role allows", async (login, running, linking) => {
  await signIn(login);
  const run = await browser.request(`${address}/jobs/backup/run`, {});
  expect(run.status).toBe(running);
  const link = await browser.request(`${address}/api/sign-in-links`, {});
  expect(link.status).toBe(linking);
  if (running === 403) {
    expect(await run.text()).toContain(
      "This requires the role operator; anna@example.org (home) has the role viewer.",
    );
    expect(await link.json()).toMatchObject({
      error: { message: expect.stringContaining("requires the role admin") },
    });
  }
});

test("changes are recorded with their author", async () => {
  await signIn("bert");
  const run = await browser.request(`${address}/jobs/backup/run`, {});
  expect(await run.json()).toEqual({ author: "bert (home)" });
  await fetch(`${address}/jobs/backup/run`, {
    method: "POST",
    headers: asOperator,
  });
  expect(history.latest(5).map(({ reason }) => reason)).toEqual([
    "started by the operator",
    "started by bert (home)",
  ]);
});

test("with a public address the sign-in moves there first, where the provider sends the browser back to", async () => {
  const server = newApi(configsOf({}), "https://console.example.org");
  const moved = await server.inject({
    url: "/sign-in/with/home?to=%2Fjobs",
    headers: { host: "home-a:4080" },
  });
  expect(moved.headers.location).toBe(
    "https://console.example.org/sign-in/with/home?to=%2Fjobs&at=public",
  );
  const sent = await server.inject({
    url: "/sign-in/with/home?to=%2Fjobs&at=public",
    headers: { host: "console.example.org" },
  });
  const { origin, searchParams } = new URL(String(sent.headers.location));
  expect(origin).toBe(provider.issuer);
  expect(searchParams.get("redirect_uri")).toBe(
    "https://console.example.org/sign-in/with/home/callback",
  );
  expect(searchParams.get("code_challenge_method")).toBe("S256");
  expect(sent.headers["set-cookie"]).toMatch(
    /^hearth_session_[0-9a-f]{8}=[\w-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/,
  );
  await server.close();
});

test("an account without a role is told so, and has no session", async () => {
  const page = await signIn("carl");
  expect(page.status).toBe(403);
  expect(page.body).toContain(
    "carl (home) has no role in this console. Ask an admin of this console for one.",
  );
  expect(await callerOf()).toBeUndefined();
});

describe("a session is confirmed every few minutes", () => {
  test.each([
    ["with refresh tokens", true],
    ["with an access token only", false],
  ])("a removed group takes away the role: %s", async (_case, refreshes) => {
    provider.refreshes = refreshes;
    provider.accounts.set("anna", { groups: ["officers", "crew"] });
    await signIn("anna");
    provider.accounts.set("anna", { groups: ["crew"] });
    expect(await callerOf()).toMatchObject({ role: "operator" });
    aheadMs = 6 * MINUTE_MS;
    expect(await callerOf()).toMatchObject({ role: "viewer" });
    provider.accounts.set("anna", { groups: [] });
    aheadMs = 12 * MINUTE_MS;
    expect(await callerOf()).toBeUndefined();
    provider.accounts.set("anna", { groups: ["crew"] });
    expect(await callerOf()).toBeUndefined();
  });

  test.each([
    ["with refresh tokens", true],
    ["with an access token only", false],
  ])(
    "a provider that leaves an emptied claim out takes away the role: %s",
    async (_case, refreshes) => {
      provider.refreshes = refreshes;
      await signIn("anna");
      provider.accounts.set("anna", {});
      expect(await callerOf()).toMatchObject({ role: "viewer" });
      aheadMs = 6 * MINUTE_MS;
      expect(await callerOf()).toBeUndefined();
    },
  );

  test.each([
    ["with refresh tokens", true],
    ["with an access token only", false],
  ])("a blocked user loses access: %s", async (_case, refreshes) => {
    provider.refreshes = refreshes;
    await signIn("anna");
    provider.accounts.delete("anna");
    expect(await callerOf()).toEqual(anna);
    aheadMs = 6 * MINUTE_MS;
    expect(await callerOf()).toBeUndefined();
  });

  test("requests at the same time use the refresh token once", async () => {
    await signIn("anna");
    aheadMs = 6 * MINUTE_MS;
    const callers = await Promise.all([1, 2, 3].map(() => callerOf()));
    expect(callers).toEqual([anna, anna, anna]);
    aheadMs = 12 * MINUTE_MS;
    expect(await callerOf()).toEqual(anna);
  });

  test("a session has a maximum length", async () => {
    await signIn("anna");
    for (let hours = 1; hours < 12; hours += 1) {
      aheadMs = hours * 60 * MINUTE_MS;
      expect(await callerOf()).toEqual(anna);
    }
    aheadMs = 12 * 60 * MINUTE_MS;
    expect(await callerOf()).toBeUndefined();
  });

  test("another operator password or other settings of the provider end it", async () => {
    await signIn("anna");
    const cookie = `hearth_session=${browser.cookie(address, "hearth_session")}`;
    const again = async (more: object) => {
      const restarted = newApi(configsOf(more));
      const { statusCode } = await restarted.inject({
        url: "/api/history",
        headers: { host: "home-a", cookie },
      });
      await restarted.close();
      return statusCode;
    };
    expect(await again({})).toBe(200);
    expect(await again({ client_secret: "another" })).toBe(200);
    expect(await again({ roles: { map: { crew: "admin" } } })).toBe(401);
    expect(await again({})).toBe(401);
  });
});

describe("an unavailable provider", () => {
  test("is named on the sign-in page, and the operator password still works", async () => {
    await signIn("anna");
    await provider.down();
    const page = await new WebClient().visit(`${address}/sign-in/with/home`);
    expect(page.status).toBe(503);
    expect(page.body).toContain(
      "Our account is unavailable (ECONNREFUSED). Sign in with the operator password, or try again later.",
    );
    const operator = new WebClient();
    await operator.request(`${address}/sign-in`, {
      password: testCredentials.operatorPassword,
    });
    expect(await callerOf(operator)).toEqual({
      role: "admin",
      name: "operator",
    });
    await provider.up();
  });

  test("its sessions last an hour after their last confirmation, and continue when it is back", async () => {
    await signIn("anna");
    await provider.down();
    aheadMs = 50 * MINUTE_MS;
    expect(await callerOf()).toEqual(anna);
    aheadMs = 61 * MINUTE_MS;
    const page = await browser.visit(`${address}/`);
    expect(page.status).toBe(401);
    expect(page.body).toContain("Our account is unavailable (ECONNREFUSED).");
    await provider.up();
    aheadMs = 62 * MINUTE_MS;
    expect(await callerOf()).toEqual(anna);
  });

  test("an address that is not the issuer's own is named", async () => {
    const issuer = provider.issuer.replace("127.0.0.1", "localhost");
    const server = newApi(configsOf({ issuer }));
    const { statusCode, body } = await server.inject({
      url: "/sign-in/with/home",
      headers: { host: "home-a", accept: "text/html" },
    });
    expect(statusCode).toBe(503);
    expect(body).toContain(
      "Our account is unavailable (it names another issuer than the configuration does: check issuer).",
    );
    await server.close();
  });

  test("wrong credentials of this console are named", async () => {
    const [config] = configsOf({ client_secret: "wrong" });
    const server = newApi(config === undefined ? [] : [config]);
    const at = await server.listen({ host: "127.0.0.1", port: 0 });
    const begun = await browser.request(`${at}/sign-in/with/home`);
    const state = new URL(begun.headers.get("location") ?? "").searchParams.get(
      "state",
    );
    const page = await browser.visit(
      `${at}/sign-in/with/home/callback?state=${state}&code=x&iss=${encodeURIComponent(provider.issuer)}`,
    );
    expect(page.status).toBe(503);
    expect(page.body).toContain(
      "Our account rejects this console (status 401): check client_id and client_secret of &quot;home&quot; under sign_in in the configuration",
    );
    await server.close();
  });
});

describe("signing out", () => {
  test("ends the session here and at the provider, and returns", async () => {
    await signIn("anna");
    const page = await browser.visit(`${address}/sign-out`, {});
    expect(page.url).toMatch(/\/session\/end/);
    const [, xsrf = ""] = /name="xsrf" value="([^"]+)"/.exec(page.body) ?? [];
    const end = `${provider.issuer}/session/end/confirm`;
    const back = await browser.visit(end, { xsrf, logout: "yes" });
    expect(back.url).toBe(`${address}/`);
    expect(await callerOf()).toBeUndefined();
    const again = await browser.visit(`${address}/sign-in/with/home`);
    expect(again.body).toContain("<title>Provider</title>");
  });

  test("everywhere: the provider ends the sessions of other browsers by the back channel", async () => {
    await signIn("anna");
    const other = new WebClient();
    await signIn("anna", "/", other);
    // The same browser at the provider, another one here.
    const third = new WebClient();
    third.cookies.set(
      new URL(provider.issuer).host,
      browser.cookies.get(new URL(provider.issuer).host) ?? new Map(),
    );
    await third.visit(`${address}/sign-in/with/home`);
    expect(await callerOf(third)).toEqual(anna);
    const page = await browser.visit(`${address}/sign-out`, {});
    const [, xsrf = ""] = /name="xsrf" value="([^"]+)"/.exec(page.body) ?? [];
    await browser.visit(`${provider.issuer}/session/end/confirm`, {
      xsrf,
      logout: "yes",
    });
    expect(await callerOf(third)).toBeUndefined();
    expect(await callerOf(other)).toEqual(anna);
  });

  test("`hearth sign-out --all` ends sessions of users", async () => {
    await signIn("anna");
    await fetch(`${address}/api/sign-out-all`, {
      method: "POST",
      headers: asOperator,
    });
    expect(await callerOf()).toBeUndefined();
  });
});

describe("attacks", () => {
  test.each([
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example",
    "/sign-in/0f43",
    "javascript:alert(1)",
  ])("no redirect to %s", async (to) => {
    const page = await signIn("anna", to);
    expect(page.url).toBe(`${address}/`);
    expect(browser.visited.join()).not.toContain("evil.example/,");
  });

  test("the id of a session changes at each sign-in, and the former one ends", async () => {
    browser.cookies.set(
      new URL(address).host,
      new Map([[`hearth_session_${new URL(address).port}`, "f".repeat(48)]]),
    );
    await signIn("anna");
    const first = browser.cookie(address, "hearth_session") ?? "";
    expect(first).not.toBe("f".repeat(48));
    await browser.visit(`${address}/sign-in/with/home`);
    const second = browser.cookie(address, "hearth_session") ?? "";
    expect(second).not.toBe(first);
    const stale = new WebClient();
    stale.cookies.set(
      new URL(address).host,
      new Map([[`hearth_session_${new URL(address).port}`, first]]),
    );
    expect(await callerOf(stale)).toBeUndefined();
    expect(await callerOf()).toEqual(anna);
  });

  /** The address to which the provider sends the browser back. */
  async function callbackOf(client: WebClient): Promise<string> {
    const form = await client.visit(`${address}/sign-in/with/home`);
    let response = await client.request(form.url, { login: "anna" });
    for (;;) {
      const next = response.headers.get("location") ?? "";
      if (next.startsWith(address)) {
        return next;
      }
      response = await client.request(new URL(next, provider.issuer).href);
    }
  }

  const REPLAYED =
    "This sign-in was already used, has expired or began in another browser. Sign in again.";

  test("a callback works once, only in the browser that began, and for ten minutes", async () => {
    const callback = await callbackOf(browser);
    const victim = new WebClient();
    const forced = await victim.visit(callback);
    expect(forced.status).toBe(403);
    expect(forced.body).toContain(REPLAYED);
    expect(await callerOf(victim)).toBeUndefined();
    const proofs = new Map(browser.cookies.get(new URL(address).host));
    await browser.visit(callback);
    expect(await callerOf()).toEqual(anna);
    const replaying = new WebClient();
    replaying.cookies.set(new URL(address).host, proofs);
    expect((await replaying.visit(callback)).body).toContain(REPLAYED);
    const late = await callbackOf(replaying);
    aheadMs = 11 * MINUTE_MS;
    expect((await replaying.visit(late)).body).toContain(REPLAYED);
  });

  test("a code of another sign-in is rejected: its nonce and verifier differ", async () => {
    const mine = new URL(await callbackOf(browser));
    const attacker = new WebClient();
    const theirs = new URL(await callbackOf(attacker));
    mine.searchParams.set("code", theirs.searchParams.get("code") ?? "");
    const page = await browser.visit(mine.href);
    expect(page.status).toBe(403);
    expect(page.body).toContain("Our account does not confirm your sign-in.");
    expect(await callerOf()).toBeUndefined();
  });

  test("an answer of another issuer is rejected", async () => {
    const callback = new URL(await callbackOf(browser));
    callback.searchParams.set("iss", "https://evil.example");
    const page = await browser.visit(callback.href);
    expect(page.status).toBe(403);
    expect(await callerOf()).toBeUndefined();
  });

  test("the provider's words are not repeated on the page", async () => {
    const callback = new URL(await callbackOf(browser));
    callback.searchParams.delete("code");
    callback.searchParams.set("error", "Call +1 555 to unlock");
    const page = await browser.visit(callback.href);
    expect(page.body).toContain(
      "Our account did not sign you in (unknown error).",
    );
    expect(page.body).not.toContain("555");
  });

  test("pages of other origins change nothing", async () => {
    await signIn("bert");
    for (const url of ["/jobs/backup/run", "/sign-out"]) {
      const { status } = await browser.request(
        `${address}${url}`,
        {},
        { origin: "https://evil.example" },
      );
      expect(status).toBe(403);
    }
    expect(await callerOf()).toMatchObject({ role: "admin" });
  });

  test.each(["", "x.y.z"])("logout token %j ends nothing", async (token) => {
    await signIn("anna");
    const { status } = await new WebClient().request(
      `${address}/sign-in/with/home/logout`,
      { logout_token: token },
    );
    expect(status).toBe(400);
    expect(await callerOf()).toEqual(anna);
  });
});

describe("clocks that differ", () => {
  test.each([-4, 4])("by %i minutes are tolerated", async (minutes) => {
    provider.idTokenSeconds = 30;
    provider.clockAheadMs = minutes * MINUTE_MS;
    await signIn("anna");
    expect(await callerOf()).toEqual(anna);
    aheadMs = 6 * MINUTE_MS;
    expect(await callerOf()).toEqual(anna);
  });

  test("by more are named", async () => {
    provider.idTokenSeconds = 30;
    provider.clockAheadMs = -10 * MINUTE_MS;
    const page = await signIn("anna");
    expect(page.status).toBe(403);
    expect(page.body).toContain(
      "The clocks of this machine and of Our account differ by more than 5 minutes: set both by NTP, then sign in again.",
    );
  });
});
