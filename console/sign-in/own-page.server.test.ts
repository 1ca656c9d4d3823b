import type { FastifyInstance } from "fastify";
import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  test,
  vi,
} from "vitest";
import { MINUTE_MS } from "../../core/duration.ts";
import type { AdminApi } from "../../supervisor/gateway/admin-api.ts";
import { openHistory, type History } from "../../supervisor/history/history.ts";
import { Invitations } from "../../supervisor/history/invitations.ts";
import { signInSchema } from "../../supervisor/sign-in/config.ts";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { MASTER_KEY, type Json } from "../../test/servers/gateway.ts";
import {
  CLIENT,
  startOpenIdProvider,
  type OpenIdProvider,
} from "../../test/servers/openid-provider.ts";
import { WebClient } from "../../test/servers/web-client.ts";
import { buildTestApi } from "../../test/supervisor/console-api.ts";
import { asOperator } from "../../test/supervisor/operator.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import {
  registerInvitationRoutes,
  type InvitationLink,
} from "../http/invitation-routes.ts";
import { registerAuditPage } from "../pages/audit/audit-page.ts";
import { registerAcceptPage } from "../pages/invitations/accept-page.ts";
import { registerInvitationsPage } from "../pages/invitations/invitations-page.ts";
import { registerMePages } from "../pages/me/me-pages.ts";
import {
  openGatewayApi,
  openNounContext,
} from "../pages/nouns/noun-context.ts";
import { syncMemberships } from "./gateway-memberships.ts";

/** People who sign in get a user of the gateway, and manage their own keys on /me. */

let place: ReturnType<typeof temporaryHome>;
let history: History;
let provider: OpenIdProvider;
let gateway: AdminFixture;
let api: FastifyInstance;
let address: string;
let aheadMs = 0;
/** `odd`: it answers something else. */
let gatewayIsDown: boolean | "odd" = false;
const env: Record<string, string> = { PROXY_MASTER_KEY: MASTER_KEY };

beforeAll(async () => {
  place = temporaryHome();
  history = openHistory(`${place.directory}/history.db`);
  const started = await startOpenIdProvider();
  provider = started.provider;
  gateway = await startAdminFixture();
  env["GATEWAY_URL"] = gateway.url;
  for (const team_id of ["kitchen", "garden"]) {
    await gateway.post("/team/new", { team_id, team_alias: `The ${team_id}` });
  }
  await gateway.post("/organization/new", {
    organization_id: "acme",
    organization_alias: "Acme",
  });
  api = newConsole();
  address = await api.listen({ host: "127.0.0.1", port: 0 });
  started.open(address, "home");
});
afterAll(async () => {
  await api?.close();
  await gateway?.stop();
  await provider?.stop();
  history.close();
  place.remove();
});
beforeEach(() => {
  aheadMs = 0;
  gatewayIsDown = false;
  provider.accounts.clear();
});

function configs() {
  return signInSchema.parse([
    {
      name: "home",
      issuer: provider.issuer,
      client_id: CLIENT.id,
      client_secret: CLIENT.secret,
      scopes: ["openid", "profile", "email", "groups"],
      allow: { domains: ["example.org"] },
      roles: { map: { captains: "admin" } },
      users: {
        teams: {
          cooks: ["kitchen"],
          chefs: [{ team: "the KITCHEN", role: "admin" }, "garden"],
          lost: ["nowhere"],
        },
        organizations: { cooks: ["Acme"] },
        max_budget: 5,
        budget_duration: "30d",
      },
    },
  ]);
}

/** The gateway, or one that does not answer. */
function breakable(real: AdminApi): AdminApi {
  const none = openGatewayApi({ ...env, GATEWAY_URL: "http://127.0.0.1:1" });
  return {
    ...real,
    ask: async (...args) =>
      gatewayIsDown === "odd"
        ? { users: "none" }
        : (gatewayIsDown ? none : real).ask(...args),
  };
}

function newConsole(): FastifyInstance {
  const server = buildTestApi({
    history,
    gateway: breakable(openGatewayApi(env)),
    providers: configs(),
    now,
  });
  server.get("/metrics", () => "hearth_up 1");
  server.get("/", (request) => ({ caller: request.requester }));
  const context = openNounContext(env, "UTC", {
    page: () => null,
    onSilent: () => {},
  });
  registerMePages(server, { ...context, api: openGatewayApi(env) });
  const invitation = {
    invitations: new Invitations(history.db, now),
    api: breakable(openGatewayApi(env)),
    history,
  };
  registerInvitationRoutes(server, invitation);
  registerInvitationsPage(server, invitation, "UTC");
  registerAuditPage(server, {
    api: openGatewayApi(env),
    db: history.db,
    timeZone: "UTC",
  });
  registerAcceptPage(server, invitation, context, now);
  return server;
}

function now(): number {
  return Date.now() + aheadMs;
}

let count = 0;
/** A person with an account of its own at the provider. */
async function newPerson(more: object = {}) {
  count += 1;
  const login = `person-${count}`;
  const account = {
    email: `${login}@example.org`,
    email_verified: true,
    groups: [] as readonly string[],
    ...more,
  };
  const browser = new WebClient();
  const set = (claims: object) =>
    provider.accounts.set(login, { ...account, ...claims });
  const visit = (path: string, form?: Record<string, string>) =>
    browser.visit(`${address}${path}`, form);
  const signIn = async () => {
    const form = await visit("/sign-in/with/home");
    return browser.visit(form.url, { login });
  };
  const user = () => userOf(login);
  set({});
  return { login, browser, set, visit, signIn, user };
}

async function userOf(login: string): Promise<Json | undefined> {
  const query = new URLSearchParams({ sso_user_id: `home:${login}` });
  const answer = await gateway.get(`/user/list?${query.toString()}`);
  return (answer["users"] as unknown as readonly Json[])[0];
}

const KEY = /sk-[\w-]{22,}/;

/** Creates a key by the form; returns the secret and the hash. */
async function createKey(
  person: Awaited<ReturnType<typeof newPerson>>,
  form: Record<string, string> = {},
) {
  const page = await person.visit("/me/new", { every_model: "all", ...form });
  expect(page.body).toContain("The key is shown only once");
  return {
    key: KEY.exec(page.body)?.[0] ?? "",
    token: /href="\/me\/([0-9a-f]{64})"/.exec(page.body)?.[1] ?? "",
  };
}

describe("the first sign-in", () => {
  test("creates a user with the address, the name and the budget, and leads to the own page", async () => {
    const anna = await newPerson({ preferred_username: "Anna" });
    const page = await anna.signIn();
    expect(page.url).toBe(`${address}/me`);
    expect(page.body).toContain("Anna has spent $ 0.00 of $ 5.00");
    expect(await anna.user()).toMatchObject({
      user_email: `${anna.login}@example.org`,
      user_alias: "Anna",
      user_role: "internal_user",
      max_budget: 5,
      budget_duration: "30d",
    });
    const id = (await anna.user())?.["user_id"];
    anna.set({ email: "anna-new@example.org" });
    await new WebClient().visit(address);
    await anna.visit("/sign-out", {});
    await anna.signIn();
    expect(await anna.user()).toMatchObject({
      user_id: id,
      user_email: "anna-new@example.org",
    });
  });

  test("takes over the user that an admin created with the verified address, but none with a role over others", async () => {
    const [bert, boss] = [await newPerson(), await newPerson()];
    await gateway.post("/user/new", {
      user_id: "bert",
      user_email: bert.login.toUpperCase() + "@example.org",
      auto_create_key: false,
    });
    await gateway.post("/user/new", {
      user_id: "boss",
      user_email: `${boss.login}@example.org`,
      user_role: "proxy_admin",
      auto_create_key: false,
    });
    await Promise.all([bert.signIn(), boss.signIn()]);
    expect(await bert.user()).toMatchObject({ user_id: "bert" });
    expect(await boss.user()).toMatchObject({
      user_role: "internal_user",
      user_email: null,
    });
  });

  test("an address that the provider has not verified gives nothing", async () => {
    const carl = await newPerson({ email_verified: false });
    const page = await carl.signIn();
    expect(page.status).toBe(403);
    expect(page.body).toContain("is not among the accounts that may sign in");
    expect(await carl.user()).toBeUndefined();
  });

  test("a console role keeps the other pages", async () => {
    const dora = await newPerson({ groups: ["captains"] });
    const page = await dora.signIn();
    expect(page.url).toBe(`${address}/`);
    expect(JSON.parse(page.body)).toMatchObject({
      caller: { role: "admin", userId: (await dora.user())?.["user_id"] },
    });
    expect((await dora.visit("/me")).status).toBe(200);
  });

  test("an answer of the gateway that is not understood locks no admin out", async () => {
    const ellen = await newPerson({ groups: ["captains"] });
    gatewayIsDown = "odd";
    expect((await ellen.signIn()).status).toBe(200);
    aheadMs = 6 * MINUTE_MS;
    expect((await ellen.visit("/")).status).toBe(200);
  });

  test("two browsers at the same time create one user", async () => {
    const eve = await newPerson();
    const other = new WebClient();
    const form = await other.visit(`${address}/sign-in/with/home`);
    await Promise.all([
      eve.signIn(),
      other.visit(form.url, { login: eve.login }),
    ]);
    const found = await gateway.get(`/user/list?user_email=${eve.login}`);
    expect(found["total"]).toBe(1);
  });

  test("while the gateway does not run, an admin signs in, and the user follows later", async () => {
    gatewayIsDown = true;
    const fred = await newPerson({ groups: ["captains"] });
    expect((await fred.signIn()).status).toBe(200);
    expect((await fred.visit("/me")).body).toContain(
      "<h1>No user of the gateway belongs to this session.</h1>",
    );
    expect(history.latest(1)[0]?.reason).toContain("does not answer");
    gatewayIsDown = false;
    aheadMs = MINUTE_MS;
    expect((await fred.visit("/me")).body).toContain("No keys yet.");
  });
});

describe("groups", () => {
  const membersOf = async (team_id: string, user: Json | undefined) => {
    const info = await gateway.get(`/team/info?team_id=${team_id}`);
    const team = info["team_info"] as Json;
    return (team["members_with_roles"] as unknown as readonly Json[]).find(
      (member) => member["user_id"] === user?.["user_id"],
    )?.["role"];
  };

  test("give teams, roles in them and organizations, and take them away when the session is confirmed", async () => {
    const gina = await newPerson({ groups: ["cooks"] });
    await gina.signIn();
    const user = await gina.user();
    expect(await membersOf("kitchen", user)).toBe("user");
    expect(await membersOf("garden", user)).toBeUndefined();
    const organizations = async () => {
      const info = await gateway.get("/organization/info?organization_id=acme");
      return (info["members"] as unknown as readonly Json[]).map(
        (each) => each["user_id"],
      );
    };
    expect(await organizations()).toContain(user?.["user_id"]);

    gina.set({ groups: ["chefs"] });
    aheadMs = 6 * MINUTE_MS;
    await gina.visit("/me");
    expect(await membersOf("kitchen", user)).toBe("admin");
    expect(await membersOf("garden", user)).toBe("user");
    expect(await organizations()).not.toContain(user?.["user_id"]);

    gina.set({ groups: [] });
    aheadMs = 12 * MINUTE_MS;
    const page = await gina.visit("/me");
    expect(page.body).not.toContain("The kitchen");
    expect(await membersOf("kitchen", user)).toBeUndefined();
    expect(await membersOf("garden", user)).toBeUndefined();
  });

  test("leave alone what no map names, and everything where the provider left the groups out", async () => {
    await gateway.post("/team/new", { team_id: "cellar" });
    const hugo = await newPerson({ groups: ["cooks"] });
    await hugo.signIn();
    const user = await hugo.user();
    const member = { user_id: user?.["user_id"], role: "admin" };
    await gateway.post("/team/member_add", { team_id: "cellar", member });
    const [config] = configs();
    const userId = String(user?.["user_id"]);
    if (config !== undefined) {
      const claims = { _claim_names: { groups: "src1" } };
      await syncMemberships(openGatewayApi(env), userId, config, claims);
    }
    expect(await membersOf("kitchen", user)).toBe("user");
    expect(await membersOf("cellar", user)).toBe("admin");
  });

  test("with an unknown team are reported, and do not prevent the sign-in", async () => {
    const ida = await newPerson({ groups: ["lost", "cooks"] });
    expect((await ida.signIn()).url).toBe(`${address}/me`);
    expect(history.latest(1)[0]?.reason).toContain('team "nowhere" not found');
    expect(await membersOf("kitchen", await ida.user())).toBe("user");
  });
});

describe("a user who is blocked at the gateway", () => {
  test("is signed out at the next confirmation, and not signed in again", async () => {
    const jan = await newPerson({ groups: ["captains"] });
    await jan.signIn();
    const user_id = (await jan.user())?.["user_id"];
    await gateway.post("/user/update", { user_id, blocked: true });
    // Its own keys are out of reach at once.
    expect((await jan.visit("/me")).status).toBe(400);
    aheadMs = 6 * MINUTE_MS;
    expect((await jan.visit("/me")).status).toBe(401);
    // The provider still knows the browser, and does not ask again.
    const page = await jan.visit("/sign-in/with/home");
    expect(page.status).toBe(403);
    expect(page.body).toContain("is blocked. Ask an admin of this console");
    await gateway.post("/user/update", { user_id, blocked: false });
    expect((await jan.visit("/sign-in/with/home")).status).toBe(200);
  });
});

describe("own keys", () => {
  test("are created, limited, used, rotated and deleted, and the audit log names the person", async () => {
    const kim = await newPerson();
    await kim.signIn();
    const { key, token } = await createKey(kim, {
      key_alias: "kim-laptop",
      max_budget: "2",
      duration: "1w",
    });
    const row = await gateway.get(`/key/info?key=${token}`);
    expect(row["info"]).toMatchObject({
      user_id: (await kim.user())?.["user_id"],
      key_alias: "kim-laptop",
      max_budget: 2,
      expires: expect.any(String),
    });
    const call = { model: "mock", messages: [{ role: "user", content: "x" }] };
    await gateway.post("/v1/chat/completions", call, key);
    await gateway.rejected(
      "POST",
      "/v1/chat/completions",
      { ...call, model: "no-such" },
      key,
    );
    await vi.waitFor(async () => {
      const me = await kim.visit("/me");
      expect(me.body).toContain("kim-laptop");
      expect(me.body).toContain("answered");
      expect(me.body).toContain("Rejected calls, last 24 hours");
      expect(me.body).not.toContain(key);
    }, 10_000);
    const page = await kim.visit(`/me/${token}`);
    expect(page.body).toContain("Latest calls");
    // Pages of the console that this role may not open are not linked.
    expect(page.body).not.toContain('href="/spend');
    expect(page.body).not.toContain('href="/keys');
    const edited = await kim.visit(`/me/${token}/edit`, {
      key_alias: "kim-phone",
      max_budget: "1",
      every_model: "some",
      models: "mock",
    });
    expect(edited.body).toContain("kim-phone");
    const rotated = await kim.visit(`/me/${token}/rotate`, { grace: "" });
    const next = KEY.exec(rotated.body)?.[0] ?? "";
    expect(next).not.toBe(key);
    expect(
      (await gateway.rejected("GET", "/v1/models", undefined, key)).status,
    ).toBe(401);
    const now = /href="\/me\/([0-9a-f]{64})"/.exec(rotated.body)?.[1] ?? "";
    const wrong = await kim.visit(`/me/${now}/delete`, { confirm: "x" });
    expect(wrong.status).toBe(400);
    await kim.visit(`/me/${now}/delete`, { confirm: "kim-phone" });
    expect(
      (await gateway.rejected("GET", "/v1/models", undefined, next)).status,
    ).toBe(401);
    const log = (await gateway.get(
      "/audit?object_type=key",
    )) as unknown as Json[];
    const mine = log.filter(
      (entry) => String(entry["actor"]) === `${kim.login}@example.org (home)`,
    );
    expect(mine.map((entry) => entry["action"])).toEqual([
      "deleted",
      "rotated",
      "updated",
      "created",
    ]);
  });

  test("stay within the bounds of the user", async () => {
    const lea = await newPerson();
    await lea.signIn();
    const user = { user_id: (await lea.user())?.["user_id"] };
    await gateway.post("/user/update", {
      ...user,
      user_role: "internal_user_viewer",
    });
    const page = await lea.visit("/me/new", { every_model: "all" });
    expect(page.status).toBe(400);
    expect(page.body).toContain(
      "internal_user_viewer may not use POST /key/generate",
    );
    expect((await lea.visit("/me")).body).not.toContain("Create key");
    await gateway.post("/user/update", {
      ...user,
      user_role: "internal_user",
      max_budget: 0,
    });
    const { key } = await createKey(lea, { max_budget: "1000" });
    const call = { model: "mock", messages: [{ role: "user", content: "x" }] };
    expect(
      await gateway.rejected("POST", "/v1/chat/completions", call, key),
    ).toMatchObject({
      error: { type: "budget_exceeded" },
    });
    // Neither the owner nor stored prompts are fields of this form.
    const sent = await createKey(lea, {
      user_id: "default_user_id",
      store_prompts: "true",
    });
    expect(
      (await gateway.get(`/key/info?key=${sent.token}`))["info"],
    ).toMatchObject({
      ...user,
      store_prompts: false,
    });
  });

  test("of others are out of reach, also for an admin of their team and of the console", async () => {
    const [max, nora] = [
      await newPerson({ groups: ["chefs", "captains"] }),
      await newPerson({ groups: ["cooks"] }),
    ];
    await max.signIn();
    await nora.signIn();
    const { token } = await createKey(nora);
    const team = await gateway.post("/key/generate", {
      user_id: (await nora.user())?.["user_id"],
      team_id: "kitchen",
    });
    for (const other of [token, String(team["token"])]) {
      for (const [path, form] of [
        [`/me/${other}`],
        [`/me/${other}/edit`],
        [`/me/${other}/edit`, { every_model: "all", key_alias: "mine" }],
        [`/me/${other}/rotate`, { grace: "" }],
        [`/me/${other}/delete`, { confirm: "x" }],
      ] as const) {
        const { status, body } = await max.visit(path, form);
        expect([path, status >= 400]).toEqual([path, true]);
        expect(body).not.toMatch(KEY);
      }
      expect(
        (await gateway.get(`/key/info?key=${other}`))["info"],
      ).toMatchObject({
        user_id: (await nora.user())?.["user_id"],
        key_alias: null,
      });
    }
    expect((await max.visit("/me")).body).not.toContain(token);
  });

  test("are changed by no page of another origin, and not shown without a session", async () => {
    const olga = await newPerson();
    await olga.signIn();
    const { token } = await createKey(olga);
    for (const path of [
      "/me/new",
      `/me/${token}/rotate`,
      `/me/${token}/delete`,
    ]) {
      const { status } = await olga.browser.request(
        `${address}${path}`,
        { every_model: "all" },
        { origin: "https://evil.example" },
      );
      expect([path, status]).toEqual([path, 403]);
    }
    const stranger = new WebClient();
    for (const path of ["/me", "/me/new", `/me/${token}`]) {
      expect((await stranger.visit(`${address}${path}`)).status).toBe(401);
    }
  });

  test("are the only thing that a person without a console role reaches", async () => {
    const paul = await newPerson();
    await paul.signIn();
    for (const path of ["/metrics", "/api/status", "/api/history"]) {
      expect([path, (await paul.visit(path)).status]).toEqual([path, 403]);
    }
    const links = [
      ...(await paul.visit("/me")).body.matchAll(/<nav[^>]*>(.*?)<\/nav>/g),
    ];
    expect(links.map(([, inner]) => inner)).toEqual([
      '<a aria-current="page" href="/me">My keys</a>',
    ]);
  });
});

describe("an invitation", () => {
  const stranger = () => new WebClient();
  let hours = 0;
  // Invalid links of former tests are forgotten.
  beforeEach(() => {
    hours += 2;
    aheadMs = hours * 60 * MINUTE_MS;
  });

  async function asOperatorSent(method: string, path: string, body?: object) {
    return fetch(`${address}${path}`, {
      method,
      ...(body === undefined
        ? { headers: asOperator }
        : {
            headers: { ...asOperator, "content-type": "application/json" },
            body: JSON.stringify(body),
          }),
    });
  }

  async function newInvitation(body: object = {}) {
    const answer = await asOperatorSent("POST", "/api/invitations", body);
    expect(answer.status).toBe(201);
    const created = (await answer.json()) as InvitationLink;
    return { ...created, link: `${address}${created.path}` };
  }

  test("gives a user of the team and role a first key, once; opening the link changes nothing", async () => {
    const { link, invitation } = await newInvitation({
      note: "Quinn",
      team: "The garden",
      team_role: "admin",
      max_budget: "3",
    });
    // A scanner of mails opens it, several times.
    for (const method of ["GET", "HEAD", "GET"]) {
      expect((await fetch(link, { method })).status).toBe(200);
    }
    const form = await stranger().visit(link);
    expect(form.body).toContain("You are invited.");
    const quinn = stranger();
    expect((await quinn.visit(link, { name: " " })).status).toBe(400);
    const page = await quinn.visit(link, { name: "Quinn\u0000 <b>" });
    expect(page.body).toContain("The key is shown only once");
    const key = KEY.exec(page.body)?.[0] ?? "";
    const info = (await gateway.get("/key/info", key))["info"];
    expect(info).toMatchObject({
      user_id: invitation.userId,
      team_id: "garden",
      created_by: `Quinn <b> (invitation ${invitation.id})`,
    });
    expect(
      await gateway.get(`/v2/user/info?user_id=${invitation.userId}`),
    ).toMatchObject({
      user_alias: "Quinn <b>",
      user_role: "internal_user",
      max_budget: 3,
    });
    const team = await gateway.get("/team/info?team_id=garden");
    expect(team["team_info"]).toMatchObject({
      members_with_roles: expect.arrayContaining([
        expect.objectContaining({ user_id: invitation.userId, role: "admin" }),
      ]),
    });
    for (const again of [
      await stranger().visit(link),
      await stranger().visit(link, { name: "Mallory" }),
    ]) {
      expect(again.status).toBe(404);
      expect(again.body).toContain("This invitation is not valid");
    }
  });

  test("is accepted by one of several at the same time", async () => {
    const { link, invitation } = await newInvitation();
    const pages = await Promise.all(
      [1, 2, 3, 4].map((each) => stranger().visit(link, { name: `R${each}` })),
    );
    expect(pages.map(({ status }) => status).toSorted()).toEqual([
      200, 404, 404, 404,
    ]);
    const keys = await gateway.get(`/key/list?user_id=${invitation.userId}`);
    expect(keys["total_count"]).toBe(1);
  });

  test("that fails can be accepted again, with the same user", async () => {
    const { link, invitation } = await newInvitation();
    gatewayIsDown = true;
    const failed = await stranger().visit(link, { name: "Sara" });
    expect(failed.status).toBe(400);
    expect(failed.body).toContain("The invitation stays valid");
    gatewayIsDown = false;
    // The user was created, and then the connection broke.
    await gateway.post("/user/new", {
      user_id: invitation.userId,
      auto_create_key: false,
    });
    const page = await stranger().visit(link, { name: "Sara" });
    expect(page.body).toContain("The key is shown only once");
  });

  test("expires and can be revoked, and says the same as an unknown one", async () => {
    const { link, invitation } = await newInvitation({ expires_in: "1h" });
    const other = await newInvitation();
    const revoked = await asOperatorSent(
      "DELETE",
      `/api/invitations/${other.invitation.id}`,
    );
    expect(revoked.status).toBe(200);
    expect(
      (
        await asOperatorSent(
          "DELETE",
          `/api/invitations/${other.invitation.id}`,
        )
      ).status,
    ).toBe(404);
    const { body } = await stranger().visit(other.link, { name: "Tim" });
    aheadMs += 61 * MINUTE_MS;
    const expired = await stranger().visit(link, { name: "Tim" });
    const unknown = await stranger().visit(
      `${address}/invitation/${"0".repeat(48)}`,
      { name: "Tim" },
    );
    expect(expired).toMatchObject({ status: 404, body });
    expect(unknown).toMatchObject({ status: 404, body });
    await expect(
      gateway.get(`/user/info?user_id=${invitation.userId}`),
    ).rejects.toThrow("404");
    // Neither page lists tokens.
    const stored = history.db.prepare("SELECT * FROM invitations").all();
    expect(JSON.stringify(stored)).not.toContain(link.split("/").at(-1));
  });

  test("is created by admins only, on the page", async () => {
    const uma = await newPerson({ groups: ["captains"] });
    await uma.signIn();
    const page = await uma.visit("/invitations", {
      note: "Vera",
      team: "The kitchen",
      max_budget: "",
    });
    const [link = ""] =
      /http:[^<]*\/invitation\/[0-9a-f]{48}/.exec(page.body) ?? [];
    expect((await stranger().visit(link)).status).toBe(200);
    const list = await uma.visit("/invitations");
    expect(list.body).toContain("Vera");
    expect(list.body).not.toContain(link);
    expect(history.latest(1)[0]?.reason).toContain(
      `by ${uma.login}@example.org (home)`,
    );
    const typo = await uma.visit("/invitations", { team: "The kitchn" });
    expect(typo.body).toContain("did you mean &quot;The kitchen&quot;?");
    const guest = await newPerson();
    await guest.signIn();
    expect((await guest.visit("/invitations")).status).toBe(403);
    expect((await guest.visit("/invitations", { note: "me" })).status).toBe(
      403,
    );
    expect((await stranger().visit(`${address}/invitations`, {})).status).toBe(
      401,
    );
    const foreign = { origin: "https://evil.example" };
    for (const url of [link, `${address}/invitations`]) {
      const { status } = await uma.browser.request(url, { name: "x" }, foreign);
      expect(status).toBe(403);
    }
  });

  test("cannot be guessed: invalid links are limited", async () => {
    const { link } = await newInvitation();
    const statuses: number[] = [];
    for (let guess = 0; guess < 12; guess += 1) {
      const path = `/invitation/${String(guess).padStart(48, "0")}`;
      statuses.push((await stranger().visit(`${address}${path}`)).status);
    }
    expect(statuses.at(-1)).toBe(429);
    aheadMs += 60 * MINUTE_MS;
    expect((await stranger().visit(link)).status).toBe(200);
  });
});

test("the audit log names people, pages by a cursor and downloads as CSV", async () => {
  const admin = await newPerson({ groups: ["captains"] });
  await admin.signIn();
  const { token } = await createKey(admin, { key_alias: "=1+1" });
  const author = `${admin.login}@example.org`;
  const page = await admin.visit(`/audit?author=${author}&type=key`);
  expect(page.status).toBe(200);
  expect(page.body).toContain(`href="/keys/${token}">=1+1</a>`);
  expect(page.body).toContain(`${author} (home)`);
  const csv = await admin.visit(`/audit.csv?author=${author}&type=key`);
  expect(csv.body).toContain(`,${author} (home),created,key,'=1+1,${token},`);
  expect(csv.body.split("\r\n")).toHaveLength(3);

  // More than one request to the gateway, and more than one page.
  await gateway.pool.query(
    "INSERT INTO audit_log (actor, action, object_type, object_id) SELECT 'crowd', 'viewed', 'key', n::text FROM generate_series(1, 260) n",
  );
  const crowd = await admin.visit("/audit.csv?author=crowd");
  expect(crowd.body.split("\r\n")).toHaveLength(262);
  const first = await admin.visit("/audit?author=crowd");
  const [, older = ""] = /href="([^"]+)">Older changes/.exec(first.body) ?? [];
  const second = await admin.visit(older.replaceAll("&amp;", "&"));
  expect(second.body).toContain("Earlier changes.");
  expect(second.body).toContain(">210<");
  expect(second.body).not.toContain(">211<");

  await admin.visit("/invitations", { note: "Walter" });
  const acts = await admin.visit("/audit?source=console");
  const shown = author.replace("@", "@<wbr>");
  expect(acts.body).toContain(`created, by ${shown} (home)`);
  const guest = await newPerson();
  await guest.signIn();
  for (const path of ["/audit", "/audit.csv"]) {
    expect((await guest.visit(path)).status).toBe(403);
  }
});
