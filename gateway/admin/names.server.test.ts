import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import type { Json } from "../../test/servers/gateway.ts";
import { query } from "../database/pool.ts";

let fixture: AdminFixture;

/** Markup, SQL, patterns and paths, each where a name is expected. */
const HOSTILE = [
  `<script>alert(1)</script>`,
  `'; DROP TABLE keys; --`,
  `" OR 1=1 --`,
  "$1",
  "%",
  "_%_",
  "\\",
  "../../../etc/passwd",
  "..%2f..%2f",
  "name?x=1&y=2#z",
  "*",
  "all-proxy-models",
  "__proto__",
  "constructor",
  "key:abc",
  "a\u202Eb\u0000c",
  "💸 ünïcödé \r\n x: y",
  " ",
  "x".repeat(256),
] as const;

/** Counts that no request below may change. */
async function bystanders(): Promise<readonly unknown[]> {
  return Promise.all([
    query(fixture.pool, "SELECT * FROM keys WHERE key_alias = 'bystander'"),
    query(fixture.pool, "SELECT * FROM users WHERE user_id = 'bystander'"),
    query(fixture.pool, "SELECT * FROM teams WHERE team_id = 'bystander'"),
    query(
      fixture.pool,
      "SELECT * FROM team_members WHERE team_id = 'bystander' ORDER BY user_id",
    ),
    query(
      fixture.pool,
      "SELECT * FROM organizations WHERE organization_id = 'bystander'",
    ),
    query(fixture.pool, "SELECT * FROM end_users WHERE user_id = 'bystander'"),
    query(fixture.pool, "SELECT * FROM tags WHERE name = 'bystander'"),
    query(fixture.pool, "SELECT * FROM budgets WHERE budget_id = 'bystander'"),
    query(
      fixture.pool,
      "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1",
    ),
  ]);
}

beforeAll(async () => {
  fixture = await startAdminFixture();
  const name = "bystander";
  await fixture.post("/budget/new", { budget_id: name, max_budget: 1 });
  await fixture.post("/organization/new", { organization_id: name });
  await fixture.post("/team/new", { team_id: name });
  await fixture.post("/user/new", { user_id: name, auto_create_key: false });
  await fixture.post("/team/member_add", {
    team_id: name,
    member: { user_id: name },
  });
  await fixture.post("/customer/new", { user_id: name });
  await fixture.post("/tag/new", { name });
  await fixture.createKey({ key_alias: name, user_id: name });
});

afterAll(() => fixture?.stop());

/** Sends a request that must be answered with this status; a rejection is a message, never an internal error. */
async function attempt(
  expected: number,
  method: string,
  path: string,
  body?: unknown,
  key?: string,
): Promise<Json> {
  const { status, json, text } = await fixture.request(method, path, body, key);
  expect([path, status, text.slice(0, 300)]).toEqual([
    path,
    expected,
    expect.any(String),
  ]);
  if (status !== 200) {
    expect(json["error"]?.["message"]).toEqual(expect.any(String));
  }
  return json;
}

/** Parameters of a new deployment. */
const PROVIDER = { model: "openai/mock-model", api_key: "x" };

/** Characters that Postgres cannot store in text. */
const UNSTORABLE = /\0/;
/** Not allowed in a team's id, which is part of other names. */
const NO_TEAM = /[\0/]/;

test.each(HOSTILE.map((name, at) => [at, name] as const))(
  "hostile name %i affects only its own object",
  async (_, name) => {
    const before = await bystanders();
    const encoded = encodeURIComponent(name);
    const held = UNSTORABLE.test(name) ? 400 : 200;
    const missing = held === 200 ? 404 : 400;
    const team = NO_TEAM.test(name) ? 400 : 200;
    const ofTeam = team === 200 ? 200 : missing;
    const key = await attempt(held, "POST", "/key/generate", {
      key_alias: name,
      user_id: name,
      models: [name],
      tags: [name],
      metadata: { [name]: name },
      aliases: { [name]: name },
      // Budgets of patterns are rejected.
      model_max_budget: { [name.replaceAll("*", "x")]: { budget_limit: 1 } },
    });
    if (held === 200) {
      expect(key).toMatchObject({ key_alias: name, user_id: name });
    }
    for (const [path, body, status] of [
      ["/budget/new", { budget_id: name }, held],
      [
        "/organization/new",
        { organization_id: name, organization_alias: name },
        held,
      ],
      ["/team/new", { team_id: name, team_alias: name, models: [name] }, team],
      [
        "/team/update",
        { team_id: name, models: [name], model_aliases: { [name]: name } },
        ofTeam,
      ],
      [
        "/user/new",
        { user_id: `u${name}`.slice(0, 256), user_alias: name },
        held,
      ],
      ["/customer/new", { user_id: name, alias: name }, held],
      ["/tag/new", { name, description: name }, held],
    ] as const) {
      await attempt(status, "POST", path, body);
    }
    for (const [path, status] of [
      [`/key/info?key=${encoded}`, missing],
      [`/key/list?key_alias=${encoded}&user_id=${encoded}`, held],
      [`/key/list?sort_by=${encoded}`, 400],
      [`/key/aliases?search=${encoded}`, held],
      [`/user/info?user_id=${encoded}`, held],
      [`/user/list?user_email=${encoded}&user_ids=${encoded}`, held],
      [`/team/info?team_id=${encoded}`, ofTeam],
      [`/v2/team/list?team_alias=${encoded}`, held],
      [`/organization/info?organization_id=${encoded}`, held],
      [`/customer/info?end_user_id=${encoded}`, held],
      [`/tag/daily/activity?tags=${encoded}`, held],
      [`/spend/logs?user_id=${encoded}&request_id=${encoded}`, held],
      [`/global/spend/report?team_id=${encoded}`, held],
      [`/refusals?api_key=${encoded}&type=${encoded}`, held],
      [`/audit?object_id=${encoded}`, held],
      [`/notices?entity=${encoded}`, held],
    ] as const) {
      await attempt(status, "GET", path);
    }
    for (const [path, body] of [
      [`/key/${encoded}/regenerate`, {}],
      [`/key/${encoded}/reset_spend`, { reset_to: 0 }],
    ] as const) {
      await attempt(missing, "POST", path, body);
    }
    for (const [path, body, status] of [
      ["/key/block", { key: name }, missing],
      ["/team/block", { team_id: name }, ofTeam],
      [
        "/team/member_add",
        { team_id: name, member: { user_id: name } },
        ofTeam,
      ],
      ["/team/member_delete", { team_id: name, user_id: name }, ofTeam],
      ["/customer/block", { user_ids: [name] }, held],
      ["/tag/delete", { name }, held],
      ["/customer/delete", { user_ids: [name] }, held],
      ["/team/delete", { team_ids: [name] }, ofTeam],
      ["/organization/delete", { organization_ids: [name] }, held],
      ["/budget/delete", { id: name }, held],
      ["/key/delete", { key_aliases: [name] }, held],
      ["/user/delete", { user_ids: [name] }, held],
    ] as const) {
      await attempt(status, "POST", path, body);
    }
    expect(await bystanders()).toEqual(before);
    expect(await fixture.differences()).toEqual([]);
  },
);

test.each(HOSTILE.map((name, at) => [at, name] as const))(
  "hostile name %i works as an alias: called, shown and deleted",
  async (_, name) => {
    const held = UNSTORABLE.test(name) ? 400 : 200;
    const alias = name.trim() === "" ? 400 : held;
    const path = `/v1/models/${encodeURIComponent(name)}`;
    const call = (expected: number, key: Json) =>
      attempt(
        expected,
        "POST",
        "/v1/chat/completions",
        { model: name, messages: [{ role: "user", content: "x" }] },
        String(key["key"]),
      );
    const make = (fields: object) =>
      attempt(held, "POST", "/key/generate", fields);
    const plain = await fixture.post("/key/generate", {});
    const restricted = await make({ models: ["bystander", name] });
    // A route has at most 256 characters, as a name.
    const route = `/${name}`.slice(0, 256);
    const elsewhere = await make({ allowed_routes: [route] });
    await attempt(404, "GET", path);
    await call(400, plain);
    const made = await attempt(alias, "POST", "/model/new", {
      model_name: name,
      provider_params: { ...PROVIDER, api_base: fixture.providerUrl },
    });
    if (alias === 200) {
      await call(200, plain);
      await call(200, restricted);
      await call(name === "*" ? 200 : 403, elsewhere);
      await attempt(200, "GET", path);
      await attempt(200, "POST", "/model/delete", {
        id: made["model_info"]?.["id"],
      });
    }
    await attempt(404, "GET", path);
  },
);

test("patterns in a search are taken literally", async () => {
  await fixture.createKey({ key_alias: "100% sure" });
  for (const [search, found] of [
    ["%", ["100% sure"]],
    ["_", []],
    ["100% SURE", ["100% sure"]],
  ] as const) {
    expect(
      (await fixture.get(`/key/aliases?search=${encodeURIComponent(search)}`))[
        "aliases"
      ],
    ).toEqual(found);
  }
});

test("fields named like properties of objects do not affect others", async () => {
  await attempt(
    400,
    "POST",
    "/key/generate",
    '{"__proto__": {"max_budget": 0}, "constructor": {"prototype": {"blocked": true}}}',
  );
  const plain = await fixture.post("/key/generate", {});
  expect(plain).toMatchObject({ max_budget: null, blocked: false });
});
