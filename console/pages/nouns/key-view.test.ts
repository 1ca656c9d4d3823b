import { expect, test } from "vitest";
import type { UsedKeyRow } from "../../../supervisor/gateway/rows.ts";
import type { KeyFacts } from "./key-facts.ts";
import { viewKey } from "./key-view.ts";

const now = Date.UTC(2026, 10, 21, 12);

const key: UsedKeyRow = {
  token: "a".repeat(64),
  key_name: "sk-...abcd",
  key_alias: "anna\u202e",
  user_id: "anna",
  team_id: "kitchen",
  models: ["mock"],
  blocked: false,
  expires: null,
  max_budget: 5,
  budget_duration: "1mo",
  rpm_limit: 60,
  tpm_limit: null,
  max_parallel_requests: null,
  spend: 4,
  budget_reset_at: "2026-12-01T00:00:00.000Z",
  created_at: "2026-11-01T09:00:00.000Z",
  created_by: "operator",
  budget_in_force: 5,
  state: "active",
  last_used_at: null,
  user_email: null,
  user_alias: null,
  team_alias: null,
};

const logged = {
  request_id: "call-1",
  request_duration_ms: 20,
  api_key: key.token,
  metadata: { user_api_key_alias: "anna", error_information: null },
};

const facts: KeyFacts = {
  key,
  usage: {
    total_spend: 9,
    budgets: [
      {
        of: "member",
        name: "anna",
        spend: 1,
        max_budget: 2,
        remaining: 1,
        budget_reset_at: null,
      },
    ],
    limits: [
      {
        of: "key",
        name: "anna",
        limit: "requests",
        allowed: 60,
        remaining: 12,
        reset_at: null,
      },
    ],
    by_day: [{ date: "2026-11-20", spend: 4 }],
    by_model: [
      {
        model: "",
        spend: 4,
        api_requests: 1200,
        failed_requests: 12,
        total_tokens: 18_204,
        saved: 1.25,
      },
    ],
    start_date: "2026-10-23",
    end_date: "2026-11-21",
    models: [{ id: "mock", status: "pending" }],
  },
  refusals: {
    refusals: [
      {
        at: "2026-11-21T10:02:00.000Z",
        type: "rate_limit_exceeded",
        model: null,
        message: "Slow down.",
      },
    ],
    counts: [
      {
        type: "rate_limit_exceeded",
        count: 30,
        last_at: "2026-11-21T10:02:00.000Z",
      },
      {
        type: "blocked",
        count: 1,
        last_at: "2026-11-20T14:00:00.000Z",
      },
    ],
    total: 31,
  },
  calls: [
    {
      endTime: "2026-11-21T10:00:00.000Z",
      model_group: "mock",
      spend: 0.5,
      total_tokens: 14,
      cache_hit: "True",
      status: "success",
      payer: null,
      ...logged,
    },
    {
      endTime: "2026-11-20T10:00:00.000Z",
      model_group: null,
      spend: 4,
      total_tokens: 0,
      cache_hit: "False",
      status: "success",
      payer: "key:a",
      ...logged,
    },
  ],
  timeZone: "UTC",
  now,
};

test("rejected calls link to the key's calls of the ledger's yesterday and today, whatever the zone of the page", () => {
  const ahead = { ...facts.usage, end_date: "2026-11-22" };
  const view = viewKey({ ...facts, usage: ahead, timeZone: "UTC" });
  expect(view.refusals.map(({ calls }) => calls)).toEqual([
    `/spend/calls?key=${key.token}&from=2026-11-21`,
    `/spend/calls?key=${key.token}&from=2026-11-21`,
  ]);
});

test("a key's page shows remaining budget, limits and rejected calls", () => {
  const view = viewKey(facts);
  expect(view).toMatchObject({
    title: "anna has $ 1.00 of $ 5.00 left.",
    look: "warn",
    budgets: [{ of: "member", name: "anna", left: "$ 1.00" }],
    limits: [{ what: "requests per minute", allowed: "60", left: "12" }],
    everyModel: false,
    models: [{ id: "mock", note: "needs an API key or address" }],
    days: [{ day: "2026-11-20", spend: "$ 4.00" }],
    byModel: [{ model: "unknown", calls: "1,200", failed: "12" }],
    figures: [
      { name: "Calls", value: "1,200" },
      {
        name: "Failed",
        value: "12",
        note: "1 % of calls",
        href: `/spend/calls?status=failure&key=${key.token}&from=2026-10-23`,
      },
      { name: "Saved by caches", value: "$ 1.25" },
      { name: "Latency", value: "–" },
      { name: "Rejected", value: "31" },
    ],
    refused: "31 rejected calls in the last 24 hours.",
    refusals: [
      {
        why: "rate limit exceeded",
        count: "30",
        at: "21 Nov, 10:02",
        message: "Slow down.",
      },
      { why: "blocked", count: "1", at: "20 Nov, 14:00", message: "" },
    ],
    calls: [
      { model: "mock", word: "answered from the cache" },
      { model: "manual correction or import" },
    ],
  });
  expect(view.facts).toEqual([
    "sk-...abcd",
    "owner: anna, team kitchen",
    "created 1 Nov, 09:00 by operator",
    "never used",
    "$ 9.00 in total",
  ]);
  expect(view.chart).toContain('role="img"');
});

test.each([
  [{ state: "blocked" }, "anna is blocked.", "rest"],
  [
    { state: "expired", expires: "2026-11-18T12:00:00.000Z" },
    "anna expired 3 d ago.",
    "bad",
  ],
  [{ state: "over_budget" }, "anna is over budget until 1 Dec, 00:00.", "warn"],
  [{ budget_in_force: null }, "anna is active, without a budget.", "ok"],
] as const)("with %j the heading is %j", (changed, title, look) => {
  expect(viewKey({ ...facts, key: { ...key, ...changed } })).toMatchObject({
    title,
    look,
  });
});

test("a key of the master key says so", () => {
  const created = { ...key, created_by: "default_user_id" };
  expect(viewKey({ ...facts, key: created }).facts).toContain(
    "created 1 Nov, 09:00 with the master key",
  );
});

test("many calls are cut to the latest", () => {
  const [call] = facts.calls;
  const many = Array.from({ length: 40 }, () => call ?? expect.fail());
  expect(viewKey({ ...facts, calls: many }).calls).toHaveLength(8);
});

test("without spend there is no chart", () => {
  const usage = { ...facts.usage, by_day: [], by_model: [] };
  expect(viewKey({ ...facts, usage }).chart).toBeNull();
});
