import { afterAll, beforeAll, expect, test } from "vitest";
import { hashKey } from "../access/keys.ts";
import { query } from "../database/pool.ts";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import type { Json } from "../../test/servers/gateway.ts";

let fixture: AdminFixture;

beforeAll(async () => {
  fixture = await startAdminFixture();
});

afterAll(() => fixture?.stop());

async function list(params: string): Promise<{
  readonly aliases: readonly unknown[];
  readonly keys: readonly Json[];
  readonly total: unknown;
}> {
  const answer = await fixture.get(
    `/key/list?return_full_object=true&size=100&${params}`,
  );
  const keys = answer["keys"] as unknown as readonly Json[];
  return {
    aliases: keys.map((key) => key["key_alias"]),
    keys,
    total: answer["total_count"],
  };
}

test("keys are found by alias, hash, owner or team", async () => {
  await fixture.post("/user/new", {
    user_id: "u-17",
    user_email: "Anna.Laptop@example.org",
    auto_create_key: false,
  });
  await fixture.post("/team/new", { team_id: "t-9", team_alias: "Kitchen" });
  const key = await fixture.createKey({ key_alias: "Büro_100%", user_id: "x" });
  await fixture.createKey({ key_alias: "of-anna", user_id: "u-17" });
  await fixture.createKey({ key_alias: "of-kitchen", team_id: "t-9" });
  for (const [search, aliases] of [
    ["büro", ["Büro_100%"]],
    ["100%", ["Büro_100%"]],
    [key.slice(-4), ["Büro_100%"]],
    [hashKey(key), ["Büro_100%"]],
    ["U-17", ["of-anna"]],
    ["anna.laptop", ["of-anna"]],
    ["kitchen", ["of-kitchen"]],
    ["_00", []],
  ] as const) {
    expect(
      (await list(`search=${encodeURIComponent(search)}`)).aliases,
    ).toEqual(aliases);
  }
});

test("keys are listed with the names of their owners", async () => {
  const [ofAnna] = (await list("search=of-anna")).keys;
  expect(ofAnna).toMatchObject({
    user_id: "u-17",
    user_email: "Anna.Laptop@example.org",
    user_alias: null,
    team_alias: null,
  });
  expect((await list("search=of-kitchen")).keys).toMatchObject([
    { team_id: "t-9", team_alias: "Kitchen", user_alias: null },
  ]);
});

test("keys are listed by state, with the budget in force and the last use", async () => {
  await fixture.post("/budget/new", { budget_id: "tier", max_budget: 1 });
  const make = async (alias: string, fields: object = {}, spend = 0) => {
    const key = await fixture.createKey({
      key_alias: alias,
      user_id: "stateful",
      ...fields,
    });
    if (spend > 0) {
      await fixture.spend({ api_key: hashKey(key), spend });
    }
    return key;
  };
  await make("s-fresh");
  await make("s-used", { max_budget: 2 }, 1.5);
  await make("s-spent", { max_budget: 1 }, 1);
  await make("s-tier", { budget_id: "tier" }, 1.25);
  await make("s-window", { max_budget: 1, budget_duration: "1d" }, 1);
  await make(
    "s-raised",
    {
      max_budget: 1,
      temp_budget_increase: 2,
      temp_budget_expiry: "2099-01-01T00:00:00Z",
    },
    1.5,
  );
  await make("s-blocked", { blocked: true, max_budget: 1 }, 1);
  const expired = await make("s-expired", { duration: "1d" });
  await query(
    fixture.pool,
    "UPDATE keys SET expires = now() WHERE token = $1",
    [hashKey(expired)],
  );
  const inState = async (state: string) =>
    (
      await list(
        `search=s-&user_id=stateful&state=${state}&sort_by=key_alias&sort_order=asc`,
      )
    ).aliases;
  expect(await inState("active")).toEqual(["s-fresh", "s-raised", "s-used"]);
  expect(await inState("blocked")).toEqual(["s-blocked"]);
  expect(await inState("expired")).toEqual(["s-expired"]);
  expect(await inState("over_budget")).toEqual([
    "s-spent",
    "s-tier",
    "s-window",
  ]);
  // LiteLLM's statuses: a used-up budget is none of them.
  const withStatus = async (status: string) => {
    const query = `search=s-&user_id=stateful&status=${status}`;
    const { aliases, keys } = await list(
      `${query}&sort_by=key_alias&sort_order=asc`,
    );
    expect(new Set(keys.map((key) => key["status"]))).toEqual(
      new Set([status]),
    );
    return aliases;
  };
  expect(await withStatus("active")).toEqual([
    "s-fresh",
    "s-raised",
    "s-spent",
    "s-tier",
    "s-used",
    "s-window",
  ]);
  expect(await withStatus("expired")).toEqual(["s-expired"]);
  expect(await withStatus("revoked")).toEqual(["s-blocked"]);
  const { state_counts: counts, total_count: total } = await fixture.get(
    "/key/list?size=1&count_states=true&user_id=nobody",
  );
  expect(total).toBe(0);
  expect(counts).toMatchObject({ blocked: 1, expired: 1, over_budget: 3 });
  const all = await list("user_id=stateful&sort_by=budget_used");
  // Keys without a budget come last.
  expect(all.aliases.slice(0, 4)).toEqual([
    "s-raised",
    "s-tier",
    expect.any(String),
    expect.any(String),
  ]);
  expect(all.keys).toContainEqual(
    expect.objectContaining({
      key_alias: "s-tier",
      state: "over_budget",
      max_budget: null,
      budget_in_force: 1,
      spend: 1.25,
      last_used_at: expect.stringMatching(/^\d{4}-/),
    }),
  );
  expect(all.keys).toContainEqual(
    expect.objectContaining({
      key_alias: "s-raised",
      state: "active",
      budget_in_force: 3,
    }),
  );
  expect(all.keys).toContainEqual(
    expect.objectContaining({
      key_alias: "s-fresh",
      budget_in_force: null,
      last_used_at: null,
    }),
  );
  expect((await list("user_id=stateful&sort_by=spend")).aliases[0]).toMatch(
    /^s-(raised|used)$/,
  );
  expect(
    await fixture.rejected("GET", "/key/list?state=active&status=deleted"),
  ).toMatchObject({ status: 400, error: { param: "state" } });
});

test("a rotated key keeps its last use, and its admins see its usage", async () => {
  const key = await fixture.createKey({
    key_alias: "renewed",
    max_budget: 1,
    models: ["mock"],
  });
  const used = "2026-01-05T10:00:00.000Z";
  await fixture.spend({ api_key: hashKey(key), spend: 0.5, ended_at: used });
  await fixture.post("/key/regenerate", { key });
  const { keys } = await list("search=renewed");
  expect(keys).toMatchObject([
    { last_used_at: used, last_active: used, spend: 0.5 },
  ]);
  const token = String(keys[0]?.["token"]);
  expect(await fixture.get(`/key/info?key=${token}`)).toMatchObject({
    info: { state: "active", last_used_at: used },
  });
  expect(
    await fixture.get(`/key/usage?key=${token}&start_date=2026-01-01`),
  ).toMatchObject({
    key: { token, key_alias: "renewed" },
    spend: 0.5,
    budgets: [{ of: "key", name: "renewed", max_budget: 1, remaining: 0.5 }],
    by_day: [{ date: "2026-01-05", spend: 0.5 }],
    models: [{ id: "mock", status: "ready" }],
  });
});

test("keys are sorted by their last use, also under a former secret; unused ones come last", async () => {
  const older = "2026-02-03T10:00:00.000Z";
  const newer = "2026-02-05T10:00:00.000Z";
  const create = (name: string) =>
    fixture.createKey({ key_alias: `l-${name}`, user_id: "by-use" });
  const renewed = await create("renewed");
  const early = await create("early");
  await create("never");
  await fixture.spend(
    { api_key: hashKey(early), ended_at: older },
    { api_key: hashKey(renewed), ended_at: newer },
  );
  await fixture.post("/key/regenerate", { key: renewed });
  const later = await create("later-that-day");
  await fixture.spend({ api_key: hashKey(later), ended_at: newer });
  for (const order of ["last_used_at", "last_active"]) {
    const sorted = await list(`user_id=by-use&sort_by=${order}`);
    expect(sorted.aliases).toEqual([
      "l-later-that-day",
      "l-renewed",
      "l-early",
      "l-never",
    ]);
  }
});

test("users and teams are searched, and sorted by spend", async () => {
  for (const [id, dollars] of [
    ["little", 1],
    ["much", 3],
  ] as const) {
    await fixture.post("/user/new", {
      user_id: `search-${id}`,
      user_alias: `Named ${id}`,
      auto_create_key: false,
      max_budget: 2,
    });
    await fixture.post("/team/new", {
      team_id: `search-${id}`,
      team_alias: `Team ${id}`,
      max_budget: 9,
    });
    await fixture.spend({
      user_id: `search-${id}`,
      team_id: `search-${id}`,
      spend: dollars,
    });
  }
  const users = await fixture.get(
    "/user/list?search=NAMED&sort_by=spend&sort_order=desc",
  );
  expect(users).toMatchObject({
    users: [
      { user_id: "search-much", spend: 3, budget_in_force: 2 },
      { user_id: "search-little", spend: 1 },
    ],
    total: 2,
  });
  const teams = await fixture.get(
    "/v2/team/list?search=team%20&sort_by=budget_used&sort_order=asc",
  );
  expect(teams).toMatchObject({
    teams: [
      { team_id: "search-little", spend: 1 },
      { team_id: "search-much", spend: 3, budget_in_force: 9 },
    ],
    total: 2,
  });
  expect(
    await fixture.rejected("GET", "/user/list?sort_by=constructor"),
  ).toMatchObject({ status: 400, error: { param: "sort_by" } });
});

test("answers without pages show the newest 1,000 and the total", async () => {
  const where = { user_id: "rich", team_id: "rich-team" };
  await fixture.post("/team/new", { team_id: where.team_id });
  const first = hashKey(await fixture.createKey(where));
  await query(
    fixture.pool,
    `INSERT INTO keys (token, key_name, user_id, team_id)
      SELECT 'many-' || n, 'sk-...many', $1, $2 FROM generate_series(1, 1000) n`,
    [where.user_id, where.team_id],
  );
  for (const path of [
    "/user/info?user_id=rich",
    "/user/info",
    "/team/info?team_id=rich-team",
  ]) {
    const { keys, total_keys: total } = await fixture.get(path);
    expect(keys).toHaveLength(1_000);
    expect(Number(total)).toBeGreaterThan(1_000);
    expect(JSON.stringify(keys)).not.toContain(first);
  }
  const everything = await fixture.get("/user/info");
  const teams = everything["teams"] as unknown as readonly Json[];
  expect(everything["total_teams"]).toBe(teams.length);
});
