import { afterAll, beforeAll, expect, test } from "vitest";
import { DAY_MS } from "../../../core/duration.ts";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../../test/servers/admin.ts";
import type { Json } from "../../../test/servers/gateway.ts";
import { hashKey } from "../../access/keys.ts";
import { query } from "../../database/pool.ts";
import { dropOldSpend } from "../../database/retention.ts";

let fixture: AdminFixture;
let key: string;
let token: string;
const TODAY = new Date().toISOString().slice(0, 10);

/** A list that a test asserts. */
async function list(path: string, as?: string): Promise<readonly unknown[]> {
  return (await fixture.get(path, as)) as unknown as readonly unknown[];
}

beforeAll(async () => {
  fixture = await startAdminFixture();
  await fixture.post("/team/new", { team_id: "crew", team_alias: "The Crew" });
  key = await fixture.createKey({
    user_id: "alice",
    team_id: "crew",
    key_alias: "alice-key",
    soft_budget: 0.4,
  });
  token = hashKey(key);
  const hers = { api_key: token, user_id: "alice", team_id: "crew" };
  const yesterday = new Date(Date.now() - DAY_MS).toISOString();
  await fixture.spend(
    { ...hers, tags: ["red"], response_id: "chatcmpl-1" },
    { ...hers, tags: ["red", "blue"], model_group: "other", model: "big" },
    { ...hers, status: "failure", spend: 0 },
    { ...hers, cache_hit: true, spend: 0, saved: 0.25 },
    { ...hers, ended_at: yesterday, end_user: "customer-1" },
    { user_id: "bob", spend: 1 },
  );
});

afterAll(() => fixture?.stop());

test("the log shows rows newest first, found by either id, in their shape", async () => {
  const rows = await list(`/spend/logs?api_key=${key}`);
  expect(rows).toHaveLength(5);
  const [found] = await list("/spend/logs?request_id=chatcmpl-1");
  expect(found).toMatchObject({
    api_key: token,
    user: "alice",
    team_id: "crew",
    model: "mock-model",
    model_group: "mock",
    custom_llm_provider: "openai",
    spend: 0.25,
    total_tokens: 14,
    request_tags: ["red"],
    cache_hit: "False",
    status: "success",
    completionStartTime: null,
    end_user: null,
    metadata: {
      user_api_key: token,
      user_api_key_alias: "alice-key",
      user_api_key_team_id: "crew",
      error_information: null,
    },
  });
  const { request_id: id } = found as { request_id: string };
  expect(await list(`/spend/logs?request_id=${id}`)).toHaveLength(1);
  const paged = await list("/spend/logs?page=2&page_size=4");
  expect(paged).toHaveLength(2);
  const times = (rows as { startTime: string }[]).map((row) => row.startTime);
  expect(times).toEqual([...times].sort().reverse());
});

test("the log is filtered and summed by day", async () => {
  expect(
    await list(`/spend/logs?user_id=alice&start_date=${TODAY}`),
  ).toHaveLength(4);
  const days = await list(`/spend/logs?user_id=alice&summarize=true`);
  expect(days).toHaveLength(2);
  expect(days[1]).toEqual({
    startTime: TODAY,
    spend: 0.5,
    users: { alice: 0.5 },
    models: { mock: 0.25, other: 0.25 },
  });
});

test("a key sees its own rows only", async () => {
  expect(await list("/spend/logs", key)).toHaveLength(5);
  expect(await list("/spend/logs?user_id=bob", key)).toEqual([]);
  const refused = await fixture.rejected(
    "GET",
    "/global/spend",
    undefined,
    key,
  );
  expect(refused).toMatchObject({
    status: 403,
    error: { type: "permission_denied" },
  });
});

test("keys, users and tags are listed by spend", async () => {
  expect(await list("/spend/keys")).toMatchObject([
    { key_alias: "alice-key", spend: 0.75, total_spend: 0.75 },
  ]);
  expect(await list("/spend/users")).toMatchObject([
    { user_id: "alice", total_spend: 0.75 },
  ]);
  expect(await list("/spend/tags")).toEqual([
    { individual_request_tag: "red", log_count: 2, total_spend: 0.5 },
    { individual_request_tag: "blue", log_count: 1, total_spend: 0.25 },
  ]);
});

test("the whole proxy's reports add up", async () => {
  expect(await fixture.get("/global/spend")).toMatchObject({
    spend: 1.75,
    max_budget: null,
  });
  expect((await list("/global/spend/logs")).at(-1)).toEqual({
    date: TODAY,
    spend: 1.5,
  });
  expect(await list("/global/spend/keys")).toMatchObject([
    { api_key: token, key_alias: "alice-key", total_spend: 0.75 },
  ]);
  expect(await list("/global/spend/models")).toMatchObject([
    { model: "mock", total_spend: 1.5 },
    { model: "other", total_spend: 0.25 },
  ]);
  expect(await list("/global/spend/provider")).toMatchObject([
    { provider: "openai", spend: 1.75 },
  ]);
  expect(await fixture.get("/global/spend/teams")).toMatchObject({
    teams: ["The Crew"],
    total_spend_per_team: [{ team_id: "crew", total_spend: 0.75 }],
  });
  expect(await fixture.get("/global/spend/tags")).toEqual({
    spend_per_tag: [
      { name: "red", spend: 0.5, log_count: 2 },
      { name: "blue", spend: 0.25, log_count: 1 },
    ],
  });
});

test.each([
  ["team", "teams", { team_name: "The Crew", total_spend: 0.5 }],
  ["user", "users", { user_id: "bob", total_spend: 1 }],
  ["model", "models", { model: "mock", total_spend: 1.25 }],
])("the report groups by %s", async (by, name, first) => {
  const days = await list(`/global/spend/report?group_by=${by}`);
  expect(days.at(-1)).toMatchObject({ group_by_day: TODAY });
  const [mostExpensive] =
    (days.at(-1) as Record<string, unknown[]>)[name] ?? [];
  expect(mostExpensive).toMatchObject({
    ...first,
    metadata: expect.any(Array),
  });
});

test("the report shows the most expensive of each day, up to a limit", async () => {
  const days = await list("/global/spend/report?group_by=user&limit=1");
  expect(days.at(-1)).toMatchObject({ users: [{ user_id: "bob" }] });
  expect((days.at(-1) as { users: unknown[] }).users).toHaveLength(1);
});

test("activity counts requests, tokens and hits", async () => {
  expect(await fixture.get("/global/activity")).toMatchObject({
    sum_api_requests: 6,
    sum_total_tokens: 84,
  });
  const [busiest] = await list("/global/activity/model");
  expect(busiest).toMatchObject({ model: "mock", sum_api_requests: 5 });
  expect(await fixture.get("/global/activity/cache_hits")).toMatchObject({
    sum_cache_hits: 1,
    sum_cache_misses: 5,
    sum_saved: 0.25,
  });
});

test.each([
  ["/user/daily/activity?user_id=alice", 0.5],
  ["/team/daily/activity?team_ids=crew", 0.5],
  ["/tag/daily/activity?tags=red", 0.5],
])("%s shows days with their parts", async (path, spent) => {
  const activity = await fixture.get(path);
  expect(activity["results"]?.[0]).toMatchObject({
    date: TODAY,
    metrics: { spend: spent },
    breakdown: {
      models: { "mock-model": { metrics: { spend: 0.25 } } },
      providers: { openai: { metrics: { spend: spent } } },
      api_keys: {
        [token]: {
          metrics: { spend: spent },
          metadata: { key_alias: "alice-key" },
        },
      },
    },
  });
  expect(activity["metadata"]).toMatchObject({ page: 1, has_more: false });
});

test.each([
  ["user", "user_id=alice", "alice", { user_alias: null }],
  ["team", "team_ids=crew", "crew", { team_alias: "The Crew" }],
  ["tag", "tags=red", "red", {}],
  ["customer", "end_user_ids=customer-1", "customer-1", { alias: null }],
])(
  "/%s/daily/activity/aggregated shows all days at once, by alias and payer too",
  async (of, params, id, alias) => {
    const aggregated = await fixture.get(
      `/${of}/daily/activity/aggregated?${params}&api_key_limit=5`,
    );
    const paged = await fixture.get(`/${of}/daily/activity?${params}`);
    expect(aggregated["results"]).toEqual(paged["results"]);
    expect(aggregated["metadata"]).toEqual({
      ...paged["metadata"],
      page: 1,
      total_pages: 1,
      has_more: false,
      api_key_limit: 5,
    });
    const days = aggregated["results"] as unknown as readonly Json[];
    expect(days.length).toBe(of === "user" || of === "team" ? 2 : 1);
    const [{ metrics, breakdown } = {} as Json] = days;
    expect(breakdown?.["entities"]).toEqual({
      [id]: { metrics, metadata: alias },
    });
    expect(breakdown?.["model_groups"]).toHaveProperty("mock");
    expect(breakdown).toMatchObject({ mcp_servers: {}, endpoints: {} });
    expect(breakdown?.["api_keys"]?.[token]?.["metadata"]).toEqual({
      key_alias: "alice-key",
      team_id: "crew",
    });
  },
);

test.each(["user", "team"])(
  "a page of /%s/daily/activity has all parts of its days, and the sums of all days",
  async (of) => {
    const whole = await fixture.get(`/${of}/daily/activity`);
    const days = whole["results"] as unknown as readonly Json[];
    expect(days).toHaveLength(2);
    for (const [index, day] of days.entries()) {
      const page = await fixture.get(
        `/${of}/daily/activity?page_size=1&page=${index + 1}`,
      );
      expect(page["results"]).toEqual([day]);
      expect(page["metadata"]).toEqual({
        ...whole["metadata"],
        page: index + 1,
        total_pages: 2,
        has_more: index === 0,
      });
    }
  },
);

test("a caller sees its own activity", async () => {
  const own = await fixture.get("/user/daily/activity", key);
  expect(own["metadata"]).toMatchObject({ total_spend: 0.75 });
  const { status } = await fixture.rejected(
    "GET",
    "/user/daily/activity?user_id=bob",
    undefined,
    key,
  );
  expect([403, 404]).toContain(status);
});

test("a cost is calculated from usage or messages", async () => {
  expect(
    await fixture.post("/spend/calculate", {
      model: "mock",
      completion_response: {
        usage: { prompt_tokens: 1_000, completion_tokens: 500 },
      },
    }),
  ).toEqual({ cost: 0.002, unpriced: false });
  const counted = await fixture.post("/spend/calculate", {
    model: "mock",
    messages: [{ role: "user", content: "hello there" }],
  });
  expect(counted["cost"]).toBeGreaterThan(0);
});

test("admins see the soft budgets that were reached", async () => {
  expect(await list("/notices")).toMatchObject([
    { kind: "soft_budget", entity: `key:${token}`, threshold: 0.4 },
  ]);
});

test.each([
  ["/spend/logs?page_size=101", "page_size"],
  ["/spend/logs?start_date=tomorrow", "start_date"],
  ["/global/activity?start_date=2026-02-01&end_date=2026-01-01", "end_date"],
  ["/global/spend/report?group_by=colour", "group_by"],
  ["/spend/logs?start_date=2026-11-02&end_date=2026-11-01", "end_date"],
  [
    "/spend/logs?summarize=true&start_date=2026-11-02&end_date=2026-11-01",
    "end_date",
  ],
])("%s is rejected by name", async (path, param) => {
  expect(await fixture.rejected("GET", path)).toMatchObject({
    status: 400,
    error: { param },
  });
});

test("the check finds a sum that is wrong", async () => {
  expect(await fixture.get("/spend/check")).toMatchObject({
    status: "equal",
    spend: 1.75,
  });
  await query(
    fixture.pool,
    "UPDATE daily_spend SET spend = spend + 1 WHERE user_id = 'bob'",
  );
  expect(await fixture.get("/spend/check")).toMatchObject({
    status: "different",
    differences: [{ kind: "day", recorded: 2.5, summed: 1.5 }],
  });
  await query(
    fixture.pool,
    "UPDATE daily_spend SET spend = spend - 1 WHERE user_id = 'bob'",
  );
});

test("the views for reports agree and contain no secret", async () => {
  const [user] = await query(
    fixture.pool,
    "SELECT * FROM report_keys WHERE token = $1",
    [token],
  );
  expect(user).toMatchObject({ key_alias: "alice-key", spend: 0.75 });
  expect(
    await query(
      fixture.pool,
      "SELECT sum(spend) AS spend FROM report_daily_spend WHERE team_alias = 'The Crew'",
    ),
  ).toEqual([{ spend: 0.75 }]);
  expect(await query(fixture.pool, "SELECT * FROM report_check")).toEqual([]);
  const granted = await query(
    fixture.pool,
    "SELECT table_name FROM information_schema.role_table_grants WHERE grantee = 'hearth_reports' AND table_name NOT LIKE 'report\\_%'",
  );
  expect(granted).toEqual([]);
});

test("the keys of a day are limited to the most expensive, its sums are not", async () => {
  const other = hashKey(await fixture.createKey({ user_id: "carol" }));
  await fixture.spend(
    { api_key: other, user_id: "carol", spend: 0.001, tags: ["wide"] },
    { api_key: token, user_id: "carol", spend: 0.002, tags: ["wide"] },
  );
  const { results, metadata } = await fixture.get(
    "/tag/daily/activity/aggregated?tags=wide&api_key_limit=1",
  );
  expect(Object.keys(results?.[0]?.["breakdown"]?.["api_keys"] ?? {})).toEqual([
    token,
  ]);
  expect(metadata?.["total_spend"]).toBe(0.003);
});

test("sums of the log by day are those of the reports, also of calls over midnight", async () => {
  const [before, day, after] = ["2026-01-20", "2026-01-21", "2026-01-22"];
  const overMidnight = (from: string, to: string, spend: number) => ({
    started_at: `${from}T23:59:00.000Z`,
    ended_at: `${to}T00:01:00.000Z`,
    spend,
  });
  await fixture.spend(
    overMidnight(before, day, 2),
    overMidnight(day, after, 4),
  );
  const range = `start_date=${day}&end_date=${day}`;
  const agree = async () => {
    expect(await list(`/global/spend/logs?${range}`)).toEqual([
      { date: day, spend: 2 },
    ]);
    expect(await list(`/spend/logs?summarize=true&${range}`)).toMatchObject([
      { startTime: day, spend: 2 },
    ]);
  };
  await agree();
  const dropped = await dropOldSpend(fixture.pool, 30, Date.now());
  expect(dropped).toContain("2026-01");
  await agree();
});

test("the summary of one call is its spend", async () => {
  expect(
    await list("/spend/logs?summarize=true&request_id=chatcmpl-1"),
  ).toEqual([
    {
      startTime: TODAY,
      spend: 0.25,
      users: { alice: 0.25 },
      models: { mock: 0.25 },
    },
  ]);
});
