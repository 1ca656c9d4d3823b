import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import type { Json } from "../../test/servers/gateway.ts";
import { query } from "../db/pool.ts";

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

/** Of what must not change by anything below. */
async function bystanders(): Promise<readonly unknown[]> {
  return Promise.all([
    query(fixture.pool, "SELECT * FROM keys WHERE key_alias = 'bystander'"),
    query(fixture.pool, "SELECT * FROM users WHERE user_id = 'bystander'"),
    query(fixture.pool, "SELECT * FROM teams WHERE team_id = 'bystander'"),
    query(
      fixture.pool,
      "SELECT * FROM team_members WHERE team_id = 'bystander'",
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
  await fixture.makeKey({ key_alias: name, user_id: name });
});

afterAll(() => fixture?.stop());

/** Refused by name, or done and answered as asked; never a failure of ours. */
async function attempt(
  method: string,
  path: string,
  body?: unknown,
): Promise<Json | null> {
  const { status, json, text } = await fixture.request(method, path, body);
  expect([path, status, text.slice(0, 300)]).toEqual([
    path,
    expect.toSatisfy((code: number) => [200, 400, 404, 409].includes(code)),
    expect.any(String),
  ]);
  if (status === 200) return json;
  expect(json["error"]?.["message"]).toEqual(expect.any(String));
  return null;
}

test.each(HOSTILE.map((name, at) => [at, name] as const))(
  "hostile name %i changes nothing but what it names",
  async (_, name) => {
    const before = await bystanders();
    const encoded = encodeURIComponent(name);
    const key = await attempt("POST", "/key/generate", {
      key_alias: name,
      user_id: name,
      models: [name],
      tags: [name],
      metadata: { [name]: name },
      aliases: { [name]: name },
      model_max_budget: { [name]: { budget_limit: 1 } },
    });
    if (key !== null)
      expect(key).toMatchObject({ key_alias: name, user_id: name });
    const made = [
      ["/budget/new", { budget_id: name }],
      [
        "/organization/new",
        { organization_id: name, organization_alias: name },
      ],
      ["/team/new", { team_id: name, team_alias: name, models: [name] }],
      ["/user/new", { user_id: `u${name}`.slice(0, 256), user_alias: name }],
      ["/customer/new", { user_id: name, alias: name }],
      ["/tag/new", { name, description: name }],
    ] as const;
    for (const [path, body] of made) await attempt("POST", path, body);
    for (const path of [
      `/key/info?key=${encoded}`,
      `/key/list?key_alias=${encoded}&user_id=${encoded}`,
      `/key/list?sort_by=${encoded}`,
      `/key/aliases?search=${encoded}`,
      `/user/info?user_id=${encoded}`,
      `/user/list?user_email=${encoded}&user_ids=${encoded}`,
      `/team/info?team_id=${encoded}`,
      `/v2/team/list?team_alias=${encoded}`,
      `/organization/info?organization_id=${encoded}`,
      `/customer/info?end_user_id=${encoded}`,
      `/tag/daily/activity?tags=${encoded}`,
      `/spend/logs?user_id=${encoded}&request_id=${encoded}`,
      `/global/spend/report?team_id=${encoded}`,
      `/refusals?api_key=${encoded}&type=${encoded}`,
      `/audit?object_id=${encoded}`,
      `/notices?entity=${encoded}`,
    ])
      await attempt("GET", path);
    await attempt("POST", `/key/${encoded}/regenerate`, {});
    await attempt("POST", `/key/${encoded}/reset_spend`, { reset_to: 0 });
    for (const [path, body] of [
      ["/key/block", { key: name }],
      ["/team/block", { team_id: name }],
      ["/team/member_add", { team_id: name, member: { user_id: name } }],
      ["/team/member_delete", { team_id: name, user_id: name }],
      ["/customer/block", { user_ids: [name] }],
      ["/tag/delete", { name }],
      ["/customer/delete", { user_ids: [name] }],
      ["/team/delete", { team_ids: [name] }],
      ["/organization/delete", { organization_ids: [name] }],
      ["/budget/delete", { id: name }],
      ["/key/delete", { key_aliases: [name] }],
      ["/user/delete", { user_ids: [name] }],
    ] as const)
      await attempt("POST", path, body);
    expect(await bystanders()).toEqual(before);
    expect(await fixture.differences()).toEqual([]);
  },
);

test("patterns in a search are taken as they stand", async () => {
  await fixture.makeKey({ key_alias: "100% sure" });
  for (const [search, found] of [
    ["%", ["100% sure"]],
    ["_", []],
    ["100% SURE", ["100% sure"]],
  ] as const)
    expect(
      (await fixture.get(`/key/aliases?search=${encodeURIComponent(search)}`))[
        "aliases"
      ],
    ).toEqual(found);
});

test("fields named like an object's own do nothing to others", async () => {
  await attempt(
    "POST",
    "/key/generate",
    '{"__proto__": {"max_budget": 0}, "constructor": {"prototype": {"blocked": true}}}',
  );
  const plain = await fixture.post("/key/generate", {});
  expect(plain).toMatchObject({ max_budget: null, blocked: false });
});
