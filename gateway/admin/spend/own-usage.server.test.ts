import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../../test/servers/admin.ts";
import { INPUT_PRICE, OUTPUT_PRICE } from "../../../test/servers/gateway.ts";
import { hashKey } from "../../access/keys.ts";

/** A change reaches the gateway by a notification, which takes longer on a busy machine. */
const PATIENT = { timeout: 20_000 };

let fixture: AdminFixture;
let key: string;
const COST = Number((10 * INPUT_PRICE + 4 * OUTPUT_PRICE).toPrecision(9));

beforeAll(async () => {
  fixture = await startAdminFixture();
  await fixture.post("/team/new", {
    team_id: "crew",
    team_alias: "The Crew",
    max_budget: 50,
    team_member_budget: 7,
  });
  await fixture.post("/team/member_add", {
    team_id: "crew",
    member: { user_id: "anna" },
  });
  key = await fixture.createKey({
    user_id: "anna",
    team_id: "crew",
    key_alias: "anna-laptop",
    max_budget: 5,
    budget_duration: "1d",
    rpm_limit: 30,
    tpm_limit: 90_000,
    max_parallel_requests: 4,
    models: ["mock"],
    model_max_budget: { mock: { budget_limit: 2, time_period: "1w" } },
  });
});

afterAll(() => fixture?.stop());

test("a key sees its spend and what is left of its budgets and limits", async () => {
  await fixture.chat(key, "hello");
  await fixture.chat(key, "hello", { model: "forbidden" });
  await fixture.running.gateway.ledger.flush();
  const usage = await fixture.get("/me/usage", key);
  expect(usage).toMatchObject({
    key: {
      token: hashKey(key),
      key_alias: "anna-laptop",
      team_alias: "The Crew",
    },
    spend: COST,
    total_spend: COST,
    refused_last_day: 1,
    refusals: [{ type: "key_model_access_denied", model: "forbidden" }],
    models: [{ id: "mock", status: "ready" }],
    by_day: [{ spend: COST, api_requests: 1, total_tokens: 14 }],
    by_model: [{ model: "mock", spend: COST }],
  });
  expect(usage["budgets"]).toMatchObject([
    {
      of: "key",
      name: "anna-laptop",
      max_budget: 5,
      spend: COST,
      budget_duration: "1d",
      budget_reset_at: expect.stringMatching(/T00:00:00.000Z$/),
    },
    { of: "team", name: "The Crew", max_budget: 50, budget_reset_at: null },
    { of: "member", name: "anna", max_budget: 7 },
    { of: "key_model", name: "mock", max_budget: 2, budget_duration: "1w" },
  ]);
  for (const budget of usage["budgets"] as unknown as {
    max_budget: number;
    remaining: number;
  }[]) {
    expect(budget.remaining).toBeCloseTo(budget.max_budget - COST, 9);
  }
  expect(usage["limits"]).toEqual([
    {
      of: "key",
      name: "anna-laptop",
      limit: "requests",
      allowed: 30,
      remaining: 29,
      reset_at: expect.any(String),
    },
    expect.objectContaining({ limit: "tokens", remaining: 90_000 - 14 }),
    expect.objectContaining({
      limit: "parallel",
      remaining: 4,
      reset_at: null,
    }),
  ]);
  expect(JSON.stringify(usage)).not.toContain(key);
});

test("a key over its budget sees its usage, a blocked key does not", async () => {
  const spent = await fixture.createKey({ max_budget: 0 });
  expect(await fixture.get("/me/usage", spent)).toMatchObject({
    budgets: [{ max_budget: 0, remaining: 0 }],
  });
  await fixture.post("/key/block", { key: spent });
  await expect
    .poll(
      async () =>
        (await fixture.request("GET", "/me/usage", undefined, spent)).status,
      PATIENT,
    )
    .toBe(401);
});

test("a key does not see the spend of another key of the same user", async () => {
  const other = await fixture.createKey({ user_id: "anna" });
  expect(await fixture.get("/me/usage", other)).toMatchObject({
    spend: 0,
    by_day: [],
    by_model: [],
    refusals: [],
    refused_last_day: 0,
  });
});

test("the master key sees its own calls", async () => {
  expect(await fixture.get("/me/usage")).toMatchObject({ key: null, spend: 0 });
});

test("a period is given in days", async () => {
  await fixture.spend({
    api_key: hashKey(key),
    ended_at: "2026-01-05T10:00:00Z",
    spend: 3,
  });
  expect(
    await fixture.get(
      "/me/usage?start_date=2026-01-01&end_date=2026-01-31",
      key,
    ),
  ).toMatchObject({
    start_date: "2026-01-01",
    end_date: "2026-01-31",
    by_day: [{ date: "2026-01-05", spend: 3 }],
  });
});

test("a key lists its own calls only, page by page, under all of its secrets", async () => {
  const own = await fixture.createKey({ user_id: "cleo", key_alias: "one" });
  const other = await fixture.createKey({ user_id: "cleo", key_alias: "two" });
  const call = (index: number, by: string) => ({
    request_id: `${by === own ? "own" : "other"}-${index}`,
    api_key: hashKey(by),
    user_id: "cleo",
    started_at: new Date(Date.now() - (9 - index) * 60_000).toISOString(),
    status: index === 1 ? ("failure" as const) : ("success" as const),
    metadata:
      index === 1
        ? { error_information: { error_message: "Overloaded." } }
        : null,
  });
  await fixture.spend(
    ...[0, 1, 2].map((index) => call(index, own)),
    ...[0, 1, 2].map((index) => call(index, other)),
  );
  const { key: renewed } = await fixture.post("/key/regenerate", {
    key: own,
    grace_period: "1h",
  });
  for (const secret of [own, String(renewed)]) {
    const first = await fixture.get("/me/calls?page_size=2", secret);
    const idsOf = ({ data }: typeof first) =>
      (data as unknown as (typeof first)[]).map(({ request_id: id }) => id);
    expect(idsOf(first)).toEqual(["own-2", "own-1"]);
    expect(first["data"]).toMatchObject([
      {},
      { metadata: { error_information: { error_message: "Overloaded." } } },
    ]);
    expect(first["newer"]).toBeNull();
    const older = encodeURIComponent(String(first["older"]));
    const second = await fixture.get(`/me/calls?older=${older}`, secret);
    expect(idsOf(second)).toEqual(["own-0"]);
    expect(second["older"]).toBeNull();
    const newer = encodeURIComponent(String(second["newer"]));
    expect(
      idsOf(await fixture.get(`/me/calls?newer=${newer}`, secret)),
    ).toEqual(["own-2", "own-1"]);
  }
  const mastered = await fixture.get("/me/calls");
  expect(JSON.stringify(mastered)).not.toMatch(/own-|other-/);
  expect(
    await fixture.rejected("GET", "/me/calls?older=x", undefined, own),
  ).toMatchObject({ status: 400, error: { param: "older" } });
});
