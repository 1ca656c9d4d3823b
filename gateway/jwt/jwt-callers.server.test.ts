import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import {
  INPUT_PRICE,
  modelYaml,
  OUTPUT_PRICE,
  type Json,
  type TestAnswer,
} from "../../test/servers/gateway.ts";
import {
  newSigningKey,
  startTokenIssuer,
  type SigningKey,
  type TokenIssuer,
} from "../../test/servers/token-issuer.ts";
import { createCallers } from "../access/caller-lookups.ts";
import { hashKey } from "../access/keys.ts";
import { createPool, query } from "../database/pool.ts";
import { JwtCallers } from "./jwt-callers.ts";

const ONE_CALL = 10 * INPUT_PRICE + 4 * OUTPUT_PRICE;
const SMALL = ONE_CALL / 2;

let gateway: AdminFixture;
let home: TokenIssuer;
let partner: TokenIssuer;
let curve: SigningKey;

beforeAll(async () => {
  home = await startTokenIssuer();
  partner = await startTokenIssuer();
  curve = await newSigningKey("curve", "ES256");
  partner.keys = [partner.key.publicJwk, curve.publicJwk];
  gateway = await startAdminFixture(issuersYaml());
});
afterAll(async () => {
  await gateway?.stop();
  await home?.down();
  await partner?.down();
});
beforeEach(async () => {
  team = `builders-${++tests}`;
  ofTeam = { realm: { groups: ["strangers", team] } };
  await query(gateway.pool, "DELETE FROM keys");
  await query(gateway.pool, "DELETE FROM deleted_keys");
  await query(gateway.pool, "DELETE FROM users");
  await query(gateway.pool, "DELETE FROM teams");
  await query(gateway.pool, "DELETE FROM organizations");
});

function issuersYaml(): string {
  return `
jwt:
  - name: home
    issuer: ${home.issuer}
    audience: gateway
    user_email_jwt_field: email
    team_id_jwt_field: realm.groups
    team_id_default: everybody
    models_jwt_field: models
    rpm_limit_jwt_field: rpm
    max_budget_jwt_field: budget
  - name: partner
    issuer: ${partner.issuer}
    audience: [gateway, other]
    algorithms: [RS256, ES256]
    id_prefix: "partner:"
    org_id_jwt_field: org
    user_id_upsert: true
`;
}

let accounts = 0;
let tests = 0;
/** Another one in each test. */
let team: string;
let ofTeam: { readonly realm: { readonly groups: readonly string[] } };

/** A token of an account that no other test has, whose user exists. */
async function newAccount(
  claims: Readonly<Record<string, unknown>> = {},
  user: Readonly<Record<string, unknown>> = {},
): Promise<{ readonly sub: string; readonly token: string }> {
  const sub = `account-${++accounts}`;
  await gateway.post("/user/new", {
    user_id: sub,
    auto_create_key: false,
    ...user,
  });
  await newTeam();
  return { sub, token: home.token({ ...ofTeam, ...claims, sub }) };
}

async function newTeam(
  fields: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  await gateway.request("POST", "/team/new", { team_id: team, ...fields });
}

const spendOf = (token: string) => async () =>
  Number((await gateway.get("/me/usage", token))["spend"]);

let prompts = 0;
const call = (token: string) => gateway.chat(token, `prompt ${++prompts}`);

async function shownError(answer: Promise<TestAnswer>): Promise<unknown[]> {
  const { status, json } = await answer;
  return [status, json["error"]?.["type"], json["error"]?.["message"]];
}

async function keysOf(subject: string): Promise<readonly Json[]> {
  return query<Json>(
    gateway.pool,
    "SELECT * FROM keys WHERE jwt_subject = $1 ORDER BY created_at",
    [subject],
  );
}

test("a call with a token is in the ledger with the user, the team and a key that has their names", async () => {
  const { sub, token } = await newAccount();
  expect((await call(token)).status).toBe(200);
  const [key] = await keysOf(sub);
  expect(key).toMatchObject({
    key_alias: `${sub} (home, ${team})`,
    key_name: "jwt:home",
    user_id: sub,
    team_id: team,
    jwt_issuer: home.issuer,
  });
  await expect.poll(spendOf(token)).toBeCloseTo(ONE_CALL, 12);
  expect(await gateway.get("/me/usage", token)).toMatchObject({
    key: { key_alias: `${sub} (home, ${team})`, user_id: sub },
  });
  const rows = (await gateway.get(
    `/spend/logs?user_id=${sub}`,
  )) as unknown as Json[];
  expect(rows).toMatchObject([
    { api_key: key?.["token"], user: sub, team_id: team },
  ]);
  expect(JSON.stringify(rows)).not.toContain(token.slice(-16));
  expect(await gateway.differences()).toEqual([]);
});

test("calls with another token of the account continue its key, those for another team have another", async () => {
  const { sub, token } = await newAccount();
  await call(token);
  await call(home.token({ ...ofTeam, sub, nonce: "another" }));
  expect(await keysOf(sub)).toHaveLength(1);
  await gateway.post("/team/new", { team_id: "everybody" });
  await call(home.token({ sub }));
  expect((await keysOf(sub)).map((key) => key["key_alias"])).toEqual([
    `${sub} (home, ${team})`,
    `${sub} (home, everybody)`,
  ]);
});

test.each([
  ["the user", { user: { max_budget: SMALL } }, /User=account/],
  ["the team", { group: { max_budget: SMALL } }, /Team=builders-/],
  ["the token", { claims: { budget: SMALL } }, /Current cost/],
])("a used-up budget of %s rejects calls", async (_who, limits, says) => {
  const { claims, user, group } = {
    claims: {},
    user: {},
    group: {},
    ...limits,
  };
  await newTeam(group);
  const { token } = await newAccount(claims, user);
  expect((await call(token)).status).toBe(200);
  const [status, type, message] = await shownError(call(token));
  expect([status, type]).toEqual([400, "budget_exceeded"]);
  expect(message).toMatch(says);
});

test("a used-up budget of the organization rejects calls, also those of its next token", async () => {
  await gateway.post("/organization/new", {
    organization_id: "partner:acme",
    organization_alias: "Acme",
    max_budget: SMALL,
  });
  const token = () => partner.token({ sub: "carl", org: "acme" });
  expect((await call(token())).status).toBe(200);
  expect(await shownError(call(token()))).toMatchObject([
    400,
    "budget_exceeded",
    expect.stringContaining("Organization=partner:acme"),
  ]);
});

test("the newest token decides the limits that it names", async () => {
  const { sub } = await newAccount();
  const now = Math.floor(Date.now() / 1000);
  const tokenOf = (rpm: number, age: number) =>
    home.token({ ...ofTeam, sub, rpm, iat: now - age });
  expect((await call(tokenOf(1, 100))).status).toBe(200);
  const limited = await call(tokenOf(1, 50));
  expect([limited.status, limited.json["error"]?.["type"]]).toEqual([
    429,
    "rate_limit_exceeded",
  ]);
  // A token from before does not raise them again.
  expect((await call(tokenOf(100, 90))).status).toBe(429);
  expect((await call(tokenOf(100, 10))).status).toBe(200);
  expect(await keysOf(sub)).toMatchObject([{ rpm_limit: 100 }]);
});

test("models of the token and of the team are enforced", async () => {
  await newTeam({ models: ["mock"] });
  const { token } = await newAccount({ models: ["another"] });
  expect(await shownError(call(token))).toMatchObject([
    403,
    "key_model_access_denied",
    expect.anything(),
  ]);
  await gateway.post("/team/update", { team_id: team, models: ["none"] });
  const { token: another } = await newAccount();
  expect(await shownError(call(another))).toMatchObject([
    403,
    "team_model_access_denied",
    expect.anything(),
  ]);
});

test("a claim that is no limit rejects the token", async () => {
  const { token } = await newAccount({ rpm: "many" });
  expect(await shownError(call(token))).toMatchObject([
    403,
    "permission_denied",
    expect.stringContaining("The claim `rpm` of the token must be"),
  ]);
});

test("a blocked account stays blocked with its next token, in another team and after its key was deleted", async () => {
  const { sub, token } = await newAccount();
  await call(token);
  const [key] = await keysOf(sub);
  const named = { key: key?.["token"] };
  await gateway.post("/key/block", named);
  const blocked = [
    401,
    "auth_error",
    "Key is blocked: jwt:home. Ask the gateway's administrator to unblock it.",
  ];
  expect(await shownError(call(token))).toEqual(blocked);
  await gateway.post("/team/new", { team_id: "everybody" });
  const elsewhere = home.token({ sub });
  expect(await shownError(call(elsewhere))).toEqual(blocked);
  await gateway.post("/key/delete", {
    keys: (await keysOf(sub)).map((row) => row["token"]),
  });
  expect(await shownError(call(token))).toEqual(blocked);
  await gateway.post("/key/unblock", named);
  expect((await call(token)).status).toBe(200);
});

test("a blocked team rejects tokens that name it", async () => {
  const { token } = await newAccount();
  await call(token);
  await gateway.post("/team/block", { team_id: team });
  expect(await shownError(call(token))).toMatchObject([
    401,
    "auth_error",
    expect.stringContaining(`Team=${team} is blocked`),
  ]);
});

test("what a token names must exist, unless its issuer's settings create it", async () => {
  await newTeam();
  const unknownUser = home.token({ ...ofTeam, sub: "nobody-yet" });
  expect(await shownError(call(unknownUser))).toMatchObject([
    403,
    "permission_denied",
    expect.stringContaining("User nobody-yet"),
  ]);
  const { sub } = await newAccount();
  expect(
    await shownError(call(home.token({ sub, realm: { groups: ["x"] } }))),
  ).toMatchObject([
    403,
    "permission_denied",
    expect.stringContaining("Team x, everybody"),
  ]);
  expect(
    await shownError(call(partner.token({ sub: "new", org: "nowhere" }))),
  ).toMatchObject([
    403,
    "permission_denied",
    expect.stringContaining("Organization partner:nowhere"),
  ]);
  expect(
    await query(
      gateway.pool,
      "SELECT FROM users WHERE user_id = 'partner:new'",
    ),
  ).toEqual([]);
});

test("a user is created at the first call, with the address that the issuer verified unless another user has it", async () => {
  const org = { organization_id: "partner:one", organization_alias: "One" };
  await gateway.post("/organization/new", org);
  await gateway.post("/user/new", {
    user_id: "first",
    user_email: "Eve@example.org",
    auto_create_key: false,
  });
  const claims = { email: "eve@example.org", org: "one" };
  const calls = ["eve-1", "eve-2"].map((sub) =>
    call(
      partner.token(
        { ...claims, sub, email_verified: sub === "eve-2" },
        {},
        sub === "eve-2" ? curve : partner.key,
      ),
    ),
  );
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([
    200, 200,
  ]);
  const made = await query(
    gateway.pool,
    "SELECT user_id, user_email, created_by FROM users WHERE user_id LIKE 'partner:%' ORDER BY user_id",
  );
  expect(made).toEqual(
    ["eve-1", "eve-2"].map((sub) => ({
      user_id: `partner:${sub}`,
      user_email: null,
      created_by: "jwt:partner",
    })),
  );
});

test("at once, many calls of a new account create one user and one key", async () => {
  await gateway.post("/organization/new", {
    organization_id: "partner:one",
    organization_alias: "One",
  });
  const answers = await Promise.all(
    [1, 2, 3, 4].map((nonce) =>
      call(partner.token({ sub: "busy", org: "one", nonce })),
    ),
  );
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect(await keysOf("busy")).toHaveLength(1);
});

test("accounts of two issuers with one subject are two users, and neither can name the other's", async () => {
  await gateway.post("/organization/new", {
    organization_id: "partner:one",
    organization_alias: "One",
  });
  const { sub, token } = await newAccount();
  await call(token);
  await call(partner.token({ sub, org: "one" }));
  expect((await keysOf(sub)).map((key) => key["user_id"])).toEqual([
    sub,
    `partner:${sub}`,
  ]);
  for (const foreign of [`partner:${sub}`, "default_user_id"]) {
    expect(
      await shownError(call(home.token({ ...ofTeam, sub: foreign }))),
    ).toMatchObject([
      403,
      "permission_denied",
      expect.stringContaining("not of its issuer"),
    ]);
  }
});

test("a token is known by all its characters, not by its beginning, and its hash opens nothing", async () => {
  const { token } = await newAccount();
  await call(token);
  const beginning = token.slice(0, -8);
  expect(await shownError(call(`${beginning}AAAAAAAA`))).toMatchObject([
    401,
    "auth_error",
    expect.stringContaining("signature"),
  ]);
  const [key] = await keysOf(`account-${accounts}`);
  for (const credential of [hashKey(token), String(key?.["token"])]) {
    expect((await call(credential)).status).toBe(401);
    expect((await call(`sk-${credential}`)).status).toBe(401);
  }
  const preimage = ["hearth-jwt", home.issuer, "x", null, null, null];
  expect((await call(JSON.stringify(preimage))).status).toBe(401);
});

test.each([
  ["an unknown issuer", () => home.token({ iss: "https://elsewhere.example" })],
  ["another issuer's signature", () => partner.token({ iss: home.issuer })],
  ["another audience", () => home.token({ aud: ["other"] })],
  ["an expired token", () => home.token({ exp: 1 })],
  ["a key of its own", () => home.token({}, { jwk: partner.key.publicJwk })],
  ["no signature", () => home.token({}, { alg: "none" }).replace(/[^.]*$/, "")],
])("%s is answered with 401 and leaves no trace", async (_what, token) => {
  const [status, type] = await shownError(call(token()));
  expect([status, type]).toEqual([401, "auth_error"]);
  expect(await query(gateway.pool, "SELECT FROM keys")).toEqual([]);
});

test("a token calls models and reads its own, and manages nothing; its key has no secret", async () => {
  const { sub, token } = await newAccount();
  await call(token);
  const key = String((await keysOf(sub))[0]?.["token"]);
  const models = await gateway.get("/v1/models", token);
  expect(models["data"]).toMatchObject([{ id: "mock" }]);
  expect(
    (await gateway.rejected("POST", "/key/generate", {}, token)).status,
  ).toBe(403);
  const secret = await gateway.createKey({ user_id: sub });
  await query(
    gateway.pool,
    "INSERT INTO team_members (team_id, user_id, role) VALUES ($2, $1, 'admin')",
    [sub, team],
  );
  for (const [path, body] of [
    ["/key/update", { key, rpm_limit: 1000 }],
    ["/key/delete", { keys: [key] }],
  ] as const) {
    const { status, error } = await gateway.rejected(
      "POST",
      path,
      body,
      secret,
    );
    expect([status, error["message"]]).toEqual([
      403,
      expect.stringContaining("only a proxy_admin may change or delete it"),
    ]);
  }
  for (const [path, body] of [
    ["/key/regenerate", { key }],
    ["/key/update", { key, user_id: "another" }],
  ] as const) {
    const { status, error } = await gateway.rejected("POST", path, body);
    expect([status, error["message"]]).toEqual([
      path === "/key/update" ? 403 : 400,
      expect.stringContaining(home.issuer),
    ]);
  }
});

test("rejected calls of an account are shown to it", async () => {
  const { token } = await newAccount({ rpm: 1 });
  await call(token);
  await call(token);
  const own = await gateway.get("/me/usage", token);
  expect(own["refusals"]).toMatchObject([{ type: "rate_limit_exceeded" }]);
});

test("while its issuer is unavailable, its known keys verify new tokens", async () => {
  const { sub, token } = await newAccount();
  await call(token);
  await home.down();
  try {
    expect((await call(home.token({ ...ofTeam, sub, nonce: 2 }))).status).toBe(
      200,
    );
    // Its keys were requested a moment ago, so they are not requested again.
    const unknown = home.token({ ...ofTeam, sub }, { kid: "new" });
    expect((await call(unknown)).status).toBe(401);
  } finally {
    await home.up();
  }
});

test("an issuer that was removed from the configuration is rejected after the reload, and without any no token is read", async () => {
  const { token } = await newAccount();
  expect((await call(token)).status).toBe(200);
  const file = join(gateway.directory, "gateway.yaml");
  const yaml = (issuers: string) =>
    writeFileSync(file, modelYaml(gateway.providerUrl) + issuers);
  yaml(issuersYaml().replace(home.issuer, "http://127.0.0.1:9"));
  await gateway.post("/config/reload", {});
  expect(await shownError(call(token))).toMatchObject([
    401,
    "auth_error",
    expect.stringContaining("issuer that is not accepted"),
  ]);
  const unavailable = await call(home.token({ iss: "http://127.0.0.1:9" }));
  expect([
    unavailable.status,
    unavailable.json["error"]?.["type"],
    unavailable.headers.get("retry-after"),
  ]).toEqual([503, "issuer_unavailable", "5"]);
  yaml("");
  await gateway.post("/config/reload", {});
  expect(await shownError(call(token))).toMatchObject([
    401,
    "auth_error",
    expect.stringContaining("virtual keys start with `sk-`"),
  ]);
  yaml(issuersYaml());
  await gateway.post("/config/reload", {});
  expect((await call(token)).status).toBe(200);
});

test("while Postgres is unavailable a verified token continues, also when it is verified again, and a new one gets 503", async () => {
  const { callers, config, log } = gateway.running.gateway;
  const away = createPool("postgresql://127.0.0.1:9/none", 1, log, "calls");
  let pool = gateway.pool;
  let now = Date.now();
  const jwt = new JwtCallers({
    config: () => config,
    get pool() {
      return pool;
    },
    callers,
    database: () => ({ ready: () => true }),
    now: () => now,
  });
  const find = (token: string) => jwt.find(token, hashKey(token));
  const { sub, token } = await newAccount();
  expect(await find(token)).toMatchObject({ userId: sub });
  pool = away;
  now += 11 * 60_000;
  expect(await find(token)).toMatchObject({ userId: sub });
  await expect(
    find(home.token({ ...ofTeam, sub, nonce: 2 })),
  ).rejects.toMatchObject({ kind: "database_unavailable" });
  await away.end();
});

test("a key that another instance has just created is found before its notice arrives", async () => {
  const { sub, token } = await newAccount();
  await call(token);
  const [key] = await keysOf(sub);
  await gateway.post("/key/delete", { keys: [key?.["token"]] });
  // Of an instance without notices.
  const callers = createCallers(gateway.pool, 60_000, {
    key: async () => undefined,
    payer: async () => undefined,
  });
  expect(await callers.keys.find(String(key?.["token"]))).toBeNull();
  expect((await call(token)).status).toBe(200);
  const jwt = new JwtCallers({
    config: () => gateway.running.gateway.config,
    pool: gateway.pool,
    callers,
    database: () => ({ ready: () => true }),
  });
  expect(await jwt.find(token, hashKey(token))).toMatchObject({ userId: sub });
});
