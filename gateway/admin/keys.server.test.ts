import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import { hashKey } from "../access/keys.ts";
import { query } from "../database/pool.ts";
import { windowAt } from "../ledger/budget-windows.ts";
import type { SpendRow } from "../ledger/rows.ts";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";

let fixture: AdminFixture;

beforeAll(async () => {
  fixture = await startAdminFixture();
});

afterAll(() => fixture?.stop());

test("a key is created with every field and its user, and shown once", async () => {
  const made = await fixture.post("/key/generate", {
    user_id: "alice",
    key_alias: "alice-laptop",
    models: ["mock"],
    max_budget: 3,
    budget_duration: "1d",
    duration: "30d",
    metadata: { where: "desk" },
    tags: ["red"],
    model_max_budget: { mock: { budget_limit: 1, time_period: "1d" } },
  });
  expect(made).toMatchObject({
    key: expect.stringMatching(/^sk-[\w-]{22}$/),
    user_id: "alice",
    key_alias: "alice-laptop",
    max_budget: 3,
    metadata: { where: "desk" },
    spend: 0,
    created_by: "default_user_id",
  });
  const key = String(made["key"]);
  expect(made["token"]).toBe(hashKey(key));
  expect(made["token_id"]).toBe(made["token"]);
  expect(made["key_name"]).toBe(`sk-...${key.slice(-4)}`);
  const info = await fixture.get(`/key/info?key=${key}`);
  expect(info["info"]).toMatchObject({ token: hashKey(key) });
  expect(JSON.stringify(info["info"])).not.toContain(key);
  expect(await fixture.get("/user/info?user_id=alice")).toMatchObject({
    user_id: "alice",
    keys: [{ key_alias: "alice-laptop" }],
  });
});

test("the holder of a key sees its key", async () => {
  const key = await fixture.createKey({ user_id: "self" });
  const info = await fixture.get("/key/info", key);
  expect(info).toMatchObject({ key: hashKey(key), info: { user_id: "self" } });
  expect(await fixture.post("/key/health", {}, key)).toEqual({
    key: "healthy",
  });
});

test("an update sets only the named fields; null resets", async () => {
  const key = await fixture.createKey({
    max_budget: 5,
    models: ["mock"],
    metadata: { a: 1 },
    tpm_limit: 7,
    duration: "1d",
  });
  const updated = await fixture.post("/key/update", {
    key,
    max_budget: null,
    models: null,
    metadata: null,
    duration: null,
    rpm_limit: 3,
  });
  expect(updated).toMatchObject({
    key,
    max_budget: null,
    models: [],
    metadata: {},
    expires: null,
    rpm_limit: 3,
    tpm_limit: 7,
  });
});

test("blocking and unblocking a key takes effect at once", async () => {
  const key = await fixture.createKey({});
  const models = () => fixture.request("GET", "/v1/models", undefined, key);
  expect((await models()).status).toBe(200);
  expect(await fixture.post("/key/block", { key })).toMatchObject({
    blocked: true,
  });
  await expect.poll(async () => (await models()).status).toBe(401);
  await fixture.post("/key/unblock", { key: hashKey(key) });
  await expect.poll(async () => (await models()).status).toBe(200);
});

test("deleted keys are kept in the history", async () => {
  const keys = await Promise.all([
    fixture.createKey({ key_alias: "gone-1" }),
    fixture.createKey({}),
  ]);
  const deleted = await fixture.post("/key/delete", { keys });
  expect(deleted["deleted_keys"]).toHaveLength(2);
  expect(
    await query(
      fixture.pool,
      "SELECT deleted_by FROM deleted_keys WHERE key_alias = 'gone-1'",
    ),
  ).toEqual([{ deleted_by: "default_user_id" }]);
  const again = await fixture.rejected("POST", "/key/delete", { keys });
  expect(again).toMatchObject({ status: 404, error: { param: "keys" } });
  await fixture.createKey({ key_alias: "by-alias" });
  await fixture.post("/key/delete", { key_aliases: ["by-alias"] });
  expect(await fixture.get("/key/list?key_alias=by-alias")).toMatchObject({
    total_count: 0,
  });
});

test("lists are filtered, sorted and paged", async () => {
  for (const budget of [3, 1, 2]) {
    await fixture.createKey({
      user_id: "lister",
      max_budget: budget,
      key_alias: `list-${budget}`,
    });
  }
  const first = await fixture.get(
    "/key/list?user_id=lister&size=2&sort_by=max_budget&sort_order=asc&return_full_object=true",
  );
  expect(first).toMatchObject({
    keys: [
      { max_budget: 1, spend: 0 },
      { max_budget: 2, spend: 0 },
    ],
    total_count: 3,
    current_page: 1,
    total_pages: 2,
  });
  const second = await fixture.get(
    "/key/list?user_id=lister&size=2&page=2&sort_by=max_budget&sort_order=asc",
  );
  expect(second["keys"]).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)]);
  expect(await fixture.get("/key/aliases?search=LIST-")).toMatchObject({
    aliases: ["list-1", "list-2", "list-3"],
  });
  await fixture.post("/team/new", { team_id: "of-aliases" });
  await fixture.createKey({ team_id: "of-aliases", key_alias: "list-team" });
  expect(await fixture.get("/key/aliases?team_id=of-aliases")).toMatchObject({
    aliases: ["list-team"],
    total_count: 1,
  });
  const several = await fixture.post("/v2/key/info", {
    keys: [...(first["keys"] as unknown as { token: string }[])].map(
      (key) => key.token,
    ),
  });
  expect(several["info"]).toHaveLength(2);
});

test("many keys are read with as many statements as one", async () => {
  await fixture.post("/team/new", { team_id: "read-at-once" });
  const keys = await Promise.all(
    Array.from({ length: 6 }, () =>
      fixture.createKey({ team_id: "read-at-once" }),
    ),
  );
  const statementsFor = async (named: readonly string[]) => {
    const statements = vi.spyOn(fixture.pool, "query");
    const { info } = await fixture.post("/v2/key/info", { keys: named });
    const count = statements.mock.calls.length;
    statements.mockRestore();
    expect(info).toHaveLength(named.length);
    return count;
  };
  expect(await statementsFor(keys)).toBe(await statementsFor(keys.slice(0, 1)));
});

test("a rotated key keeps its budget; the old secret works during the grace period", async () => {
  const key = await fixture.createKey({
    user_id: "rota",
    key_alias: "rota-key",
    max_budget: 10,
    model_max_budget: { mock: { budget_limit: 5 } },
  });
  await fixture.spend({ api_key: hashKey(key), user_id: "rota", spend: 0.3 });
  const made = await fixture.post(`/key/${hashKey(key)}/regenerate`, {
    grace_period: "1h",
    max_budget: 9,
  });
  const renewed = String(made["key"]);
  expect(renewed).not.toBe(key);
  expect(made).toMatchObject({
    key_alias: "rota-key",
    max_budget: 9,
    spend: 0.3,
    token: hashKey(renewed),
  });
  await expect
    .poll(async () => (await fixture.get("/key/info", key))["key"]?.toString())
    .toBe(hashKey(renewed));
  const stopped = await fixture.post("/key/regenerate", { key: renewed });
  await expect
    .poll(
      async () =>
        (await fixture.request("GET", "/v1/models", undefined, renewed)).status,
    )
    .toBe(401);
  expect(stopped["spend"]).toBe(0.3);
  expect(await fixture.differences()).toEqual([]);
});

test("a rotated key keeps its history: days, rows, rejected calls and total spend", async () => {
  const yesterday = new Date(Date.now() - DAY_MS).toISOString();
  const first = await fixture.createKey({
    user_id: "historian",
    key_alias: "history",
    max_budget: 10,
    budget_duration: "1d",
    models: ["mock"],
  });
  await query(
    fixture.pool,
    "UPDATE keys SET created_at = $2 WHERE token = $1",
    [hashKey(first), new Date(Date.now() - 3 * DAY_MS).toISOString()],
  );
  const row = { api_key: hashKey(first), user_id: "historian" };
  await fixture.spend(
    { ...row, ended_at: yesterday, spend: 2 },
    { ...row, spend: 0.5 },
  );
  expect((await fixture.chat(first, "no", { model: "other" })).status).toBe(
    403,
  );
  const renew = async (key: string) =>
    String((await fixture.post("/key/regenerate", { key }))["key"]);
  const second = await renew(first);
  await fixture.spend({ ...row, api_key: hashKey(second), spend: 0.25 });
  const last = await renew(second);

  const usage = await fixture.get("/me/usage", last);
  expect(usage).toMatchObject({
    spend: 0.75,
    total_spend: 2.75,
    by_day: [
      { date: yesterday.slice(0, 10), spend: 2 },
      { spend: 0.75, api_requests: 2 },
    ],
    by_model: [{ model: "mock", spend: 2.75 }],
    refusals: [{ type: "key_model_access_denied", key_alias: "history" }],
    refused_last_day: 1,
  });
  const logs = await fixture.get(`/spend/logs?api_key=${hashKey(last)}`);
  expect(logs).toHaveLength(3);
  expect(logs[0]?.["metadata"]).toMatchObject({
    user_api_key_alias: "history",
  });
  const token = hashKey(last);
  const activity = await fixture.get(`/user/daily/activity?api_key=${token}`);
  expect(activity["metadata"]).toMatchObject({ total_spend: 2.75 });
  expect(
    Object.keys(activity["results"]?.[0]?.["breakdown"]?.["api_keys"] ?? {}),
  ).toEqual([token]);
  const report = await fixture.get(
    "/global/spend/report?group_by=api_key&internal_user_id=historian&limit=1",
  );
  expect(report).toMatchObject([
    { api_keys: [{ api_key: token, total_spend: 2 }] },
    { api_keys: [{ api_key: token, total_spend: 0.75 }] },
  ]);
  expect(await fixture.get("/global/spend/keys")).toContainEqual(
    expect.objectContaining({
      api_key: token,
      key_alias: "history",
      total_spend: 2.75,
    }),
  );
  expect(
    await query(
      fixture.pool,
      "SELECT DISTINCT api_key FROM report_daily_spend WHERE user_id = 'historian'",
    ),
  ).toEqual([{ api_key: token }]);
  expect(await fixture.differences()).toEqual([]);
});

test("a previous secret of a key cannot become a new key", async () => {
  const key = await fixture.createKey({});
  await fixture.post("/key/regenerate", { key });
  expect(
    await fixture.rejected("POST", "/key/generate", { key }),
  ).toMatchObject({
    status: 409,
    error: { message: expect.stringContaining("already") },
  });
  expect(
    (await fixture.request("GET", "/v1/models", undefined, key)).status,
  ).toBe(401);
});

test("setting spend adds a row to the ledger and admits calls again", async () => {
  const key = await fixture.createKey({ user_id: "spent", max_budget: 0.5 });
  await fixture.spend({ api_key: hashKey(key), spend: 0.75 });
  expect((await fixture.chat(key, "over")).json["error"]?.["type"]).toBe(
    "budget_exceeded",
  );
  expect(
    await fixture.post(`/key/${key}/reset_spend`, { reset_to: 0.1 }),
  ).toMatchObject({
    key_hash: hashKey(key),
    spend: 0.1,
    previous_spend: 0.75,
    max_budget: 0.5,
    budget_reset_at: null,
  });
  expect((await fixture.chat(key, "under")).status).toBe(200);
  expect(
    await query(
      fixture.pool,
      "SELECT call_type, sum(spend)::text AS spend FROM spend_log WHERE payer = $1 GROUP BY call_type",
      [`key:${hashKey(key)}`],
    ),
  ).toEqual([{ call_type: "adjustment", spend: "-0.65" }]);
  const updated = await fixture.post("/key/update", { key, spend: 0.6 });
  expect(updated["spend"]).toBe(0.6);
  expect((await fixture.chat(key, "over again")).json["error"]?.["type"]).toBe(
    "budget_exceeded",
  );
  expect(await fixture.differences()).toEqual([]);
});

test("a new budget duration starts with the spend in its window", async () => {
  const key = await fixture.createKey({ user_id: "window" });
  const long = new Date(Date.now() - 400 * DAY_MS).toISOString();
  await fixture.spend(
    { api_key: hashKey(key), spend: 0.5 },
    { api_key: hashKey(key), spend: 4, ended_at: long },
  );
  const daily = await fixture.post("/key/update", {
    key,
    budget_duration: "1d",
  });
  expect(daily).toMatchObject({
    spend: 0.5,
    budget_reset_at: expect.stringMatching(/T00:00:00.000Z$/),
  });
  await fixture.spend({ api_key: hashKey(key), spend: 0.25 });
  const tier = await fixture.post("/budget/new", { budget_duration: "1mo" });
  const monthly = await fixture.post("/key/update", {
    key,
    budget_duration: null,
    budget_id: tier["budget_id"],
  });
  expect(monthly["spend"]).toBe(0.75);
  await fixture.spend({ api_key: hashKey(key), spend: 0.25 });
  await fixture.post("/budget/update", {
    budget_id: tier["budget_id"],
    budget_duration: "1d",
  });
  const info = await fixture.get(`/key/info?key=${key}`);
  expect(info["info"]?.["spend"]).toBe(1);
  expect(await fixture.differences()).toEqual([]);
});

/** Spends today, earlier this month or year, and long ago. */
async function spendOverTime(payer: Partial<SpendRow>): Promise<void> {
  await fixture.spend(
    ...[0, 1, 2, 8, 40, 400].map((days) => ({
      ...payer,
      spend: days + 0.5,
      ended_at: new Date(Date.now() - days * DAY_MS).toISOString(),
    })),
  );
}

const OTHER_DURATIONS = ["1h", "1d", "1w", "7d", "1mo", "30d", null];

test.each([{}, { reset_to: null }, { reset_to: 0.76 }])(
  "a reset without an amount or to more than the spend is rejected, and the spend remains: %j",
  async (body) => {
    const key = await fixture.createKey({ user_id: "not reset" });
    await fixture.spend({ api_key: hashKey(key), spend: 0.75 });
    expect(
      await fixture.rejected("POST", `/key/${key}/reset_spend`, body),
    ).toMatchObject({ status: 400, error: { param: "reset_to" } });
    const { info } = await fixture.get(`/key/info?key=${key}`);
    expect(info).toMatchObject({ spend: 0.75 });
  },
);

test("a spend that was reset is 0 in windows of any duration, never less", async () => {
  const key = await fixture.createKey({ user_id: "reset over time" });
  await spendOverTime({ api_key: hashKey(key) });
  await fixture.post(`/key/${key}/reset_spend`, { reset_to: 0 });
  for (const budget_duration of OTHER_DURATIONS) {
    const updated = await fixture.post("/key/update", { key, budget_duration });
    expect([budget_duration, updated["spend"]]).toEqual([budget_duration, 0]);
  }
  const { spend } = await fixture.post("/key/update", {
    key,
    budget_duration: "12mo",
  });
  expect(spend).toBeGreaterThanOrEqual(0);
  expect(await fixture.differences()).toEqual([]);
});

test("a rotated key has spent in windows of any duration what it had before", async () => {
  const key = await fixture.createKey({ user_id: "rotated over time" });
  await spendOverTime({ api_key: hashKey(key) });
  const { key: renewed } = await fixture.post("/key/regenerate", { key });
  const entities = [key, String(renewed)].map((each) => `key:${hashKey(each)}`);
  for (const duration of OTHER_DURATIONS) {
    const { start } = windowAt(duration, Date.now(), "UTC");
    const [former, current] = await query<{ spend: string }>(
      fixture.pool,
      "SELECT spend_between(entity, $2, 'infinity')::float8 AS spend FROM unnest($1::text[]) entity",
      [entities, duration === null ? "-infinity" : new Date(start)],
    );
    expect([duration, current]).toEqual([duration, former]);
  }
  expect(await fixture.differences()).toEqual([]);
});

test.each([null, "1s", "1d", "1mo", "12mo"])(
  "a team created again with the budget duration %s has spent nothing, also when the duration changes",
  async (budget_duration) => {
    const team_id = `again ${budget_duration}`;
    const created = () =>
      fixture.post("/team/new", { team_id, budget_duration });
    await created();
    await spendOverTime({ team_id });
    await fixture.post("/team/delete", { team_ids: [team_id] });
    expect((await created())["spend"]).toBe(0);
    for (const budget_duration of OTHER_DURATIONS) {
      await fixture.post("/team/update", { team_id, budget_duration });
      const { team_info } = await fixture.get(
        `/team/info?team_id=${encodeURIComponent(team_id)}`,
      );
      expect([budget_duration, team_info?.["spend"]]).toEqual([
        budget_duration,
        0,
      ]);
    }
    expect(await fixture.differences()).toEqual([]);
  },
);

test("many keys are updated at once, each on its own", async () => {
  const key = await fixture.createKey({});
  const done = await fixture.post("/key/bulk_update", {
    keys: [
      { key, max_budget: 4 },
      { key: "sk-unknown-to-this-gateway", max_budget: 4 },
      { key, max_budget: -1 },
    ],
  });
  expect(done).toMatchObject({
    total_requested: 3,
    successful_updates: [{ key: hashKey(key), key_info: { max_budget: 4 } }],
    failed_updates: [
      {
        failed_reason: expect.stringMatching(/^Key ending in eway not found/),
      },
      {
        failed_reason: expect.stringMatching(
          /^`max_budget` must be at least 0 dollars/,
        ),
      },
    ],
  });
});

test.each([
  ["a negative budget", { max_budget: -1 }, "max_budget"],
  ["more spend than limits count exactly", { spend: 9e6 + 1 }, "spend"],
  [
    "a raise above the highest budget",
    { temp_budget_increase: 1e308, temp_budget_expiry: "2099-01-01T00:00:00Z" },
    "temp_budget_increase",
  ],
  [
    "a raise that has already ended",
    { temp_budget_increase: 1, temp_budget_expiry: "2020-01-01T00:00:00Z" },
    "temp_budget_expiry",
  ],
  ["a malformed duration", { budget_duration: "soon" }, "budget_duration"],
  ["a key of another kind", { key: "pk-1234567890123456789" }, "key"],
  ["an unknown team", { team_id: "nobody" }, "team_id"],
  ["an unknown tier", { budget_id: "nothing" }, "budget_id"],
  ["a wrong type", { models: "mock" }, "models"],
  ["NUL in a name", { key_alias: "a\0b" }, "key_alias"],
])("%s is rejected by name", async (_, body, param) => {
  const { status, error } = await fixture.rejected(
    "POST",
    "/key/generate",
    body,
  );
  expect(status === 400 || status === 404).toBe(true);
  expect(error["param"] ?? undefined).toBe(param);
});

test.each([
  ["2099-01-15", "2099-01-15T00:00:00.000Z"],
  ["2099-01-15T08:30:00", "2099-01-15T08:30:00.000Z"],
  ["2099-01-15T08:30:00+02:00", "2099-01-15T06:30:00.000Z"],
])("a raise until %s ends at that time", async (until, end) => {
  const created = await fixture.post("/key/generate", {
    max_budget: 1,
    temp_budget_increase: 1,
    temp_budget_expiry: until,
  });
  expect(created["temp_budget_expiry"]).toBe(end);
});

test.each(["2099-02-30", "2099-01-15T25:00:00", "10d"])(
  "a raise until %s is rejected",
  async (until) => {
    const { status, error } = await fixture.rejected("POST", "/key/generate", {
      temp_budget_increase: 1,
      temp_budget_expiry: until,
    });
    expect(status).toBe(400);
    expect(error["message"]).toContain("or a day such as 2026-11-21");
  },
);

test("a raise that has ended may be sent back with a key's other fields, ended, or replaced by a later one", async () => {
  const key = await fixture.createKey({ max_budget: 1 });
  const raise = {
    temp_budget_increase: 1,
    temp_budget_expiry: "2020-01-01T00:00:00.000Z",
  };
  await query(
    fixture.running.gateway.pool,
    "UPDATE keys SET temp_budget_increase = 1, temp_budget_expiry = $2 WHERE token = $1",
    [hashKey(key), raise.temp_budget_expiry],
  );
  const update = (fields: Readonly<Record<string, unknown>>) =>
    fixture.request("POST", "/key/update", { key, max_budget: 2, ...fields });
  expect(await update(raise)).toMatchObject({ status: 200 });
  expect(
    await update({ ...raise, temp_budget_expiry: "2021-01-01T00:00:00Z" }),
  ).toMatchObject({ status: 400 });
  for (const temp_budget_expiry of ["2099-01-01T00:00:00Z", null]) {
    const temp_budget_increase = temp_budget_expiry && 1;
    expect(
      await update({ temp_budget_increase, temp_budget_expiry }),
    ).toMatchObject({ status: 200 });
  }
});

test("the audit log shows changes and their authors", async () => {
  const key = await fixture.createKey({ max_budget: 1 });
  await fixture.request(
    "POST",
    "/key/update",
    { key, max_budget: 2 },
    undefined,
    { "litellm-changed-by": "anna" },
  );
  const [entry] = (await fixture.get(
    `/audit?object_type=key&object_id=${hashKey(key)}`,
  )) as unknown as unknown[];
  expect(entry).toMatchObject({
    actor: "anna",
    action: "updated",
    before: { max_budget: 1 },
    after: { max_budget: 2 },
  });
});

test("all sums agree at the end", async () => {
  expect(await fixture.get("/spend/check")).toMatchObject({
    status: "equal",
    differences: [],
  });
});

test("what a key holder sets has at most 256 kB, and of an admin 4 MB: it stays in the database and in memory", async () => {
  const own = await fixture.createKey({ user_id: "hoarder" });
  const sized = (bytes: number) => ({ metadata: { a: "x".repeat(bytes) } });
  const generate = (bytes: number, key?: string) =>
    fixture.request("POST", "/key/generate", sized(bytes), key);
  expect((await generate(250_000, own)).status).toBe(200);
  expect(await generate(270_000, own)).toMatchObject({
    status: 413,
    json: { error: { message: expect.stringContaining("262,144") } },
  });
  expect((await generate(1_000_000)).status).toBe(200);
  expect((await generate(5_000_000)).status).toBe(413);
});
