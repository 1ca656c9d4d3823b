import { expect, test } from "vitest";
import type { CallList } from "../../../supervisor/gateway/calls.ts";
import {
  callsHref,
  filterOf,
  gatewayQuery,
  readCallChoice,
} from "./call-choice.ts";
import { viewCalls, viewControls } from "./calls-view.ts";

const NOW = Date.UTC(2026, 10, 22);

const token = "a".repeat(64);
const failed = {
  model_group: "mock",
  spend: 0,
  total_tokens: 0,
  cache_hit: "False",
  status: "failure",
  payer: null,
  request_duration_ms: 20,
} as const;

const page: CallList = {
  data: [
    {
      ...failed,
      request_id: "call-2",
      endTime: "2026-11-21T10:00:00.000Z",
      api_key: token,
      metadata: { user_api_key_alias: "anna", error_information: null },
    },
    {
      ...failed,
      request_id: "call/1",
      endTime: "2026-11-21T09:00:00.000Z",
      api_key: null,
      metadata: { user_api_key_alias: null, error_information: null },
    },
  ],
  older: "2026-11-21T08:59:59.000000Z,call/1",
  newer: null,
  searched_back_to: null,
  total: 52,
  total_is_capped: false,
  models: ["mock"],
  providers: ["openai"],
  names: { key: null, user: null, team: null },
};

test("an address names the calls, and the gateway gets its own parameters", () => {
  const href = callsHref({
    status: "failure",
    model: "a/b",
    from: "2026-11-01",
  });
  expect(href).toBe("/spend/calls?status=failure&model=a%2Fb&from=2026-11-01");
  const choice = readCallChoice({
    status: "failure",
    key: " editor ",
    model: "a/b",
    cost: "0.05",
    latency: "2.5",
    from: "2026-11-01",
    until: "2026-11-02",
    error: "slow",
    older: ["a", "b"],
  });
  expect(choice).toMatchObject({ key: "editor", older: "", tag: "" });
  expect(gatewayQuery(choice)).toBe(
    "/spend/calls?status=failure&key=editor&model=a%2Fb&min_spend=0.05&min_duration_ms=2500&error=slow&start_date=2026-11-01&end_date=2026-11-02&page_size=50&with_names=true",
  );
  expect(gatewayQuery({ ...choice, latency: "2s" })).toBeNull();
  expect(["min_spend", "end_date", "tag", "older", null].map(filterOf)).toEqual(
    ["cost", "until", "tag", null, null],
  );
});

test("a page of calls names its filters, each with its removal, and links to its calls, keys and older calls", () => {
  const choice = readCallChoice({
    status: "failure",
    user: "u1",
    cost: "0.1",
    until: "2026-11-21",
  });
  const rest = "status=failure&user=u1";
  expect(viewCalls(choice, page, { user: "Anna" }, "UTC", NOW)).toMatchObject({
    title: "52 failed calls.",
    look: "warn",
    chosen: [
      { words: "user Anna", without: expect.not.stringContaining("u1") },
      {
        words: "at least $ 0.1",
        without: `/spend/calls?${rest}&until=2026-11-21`,
      },
      { words: "to 2026-11-21", without: `/spend/calls?${rest}&cost=0.1` },
    ],
    clear: "/spend/calls?status=failure",
    calls: [
      {
        at: "21 Nov, 10:00:00",
        href: "/spend/calls/call-2",
        key: { name: "anna", href: `/keys/${token}` },
      },
      {
        href: "/spend/calls/call%2F1",
        key: { name: "master key", href: null },
      },
    ],
    searched: null,
    newer: null,
    older:
      "/spend/calls?status=failure&user=u1&cost=0.1&until=2026-11-21&older=2026-11-21T08%3A59%3A59.000000Z%2Ccall%2F1",
    olderLabel: "Older calls",
  });
});

test.each([
  [{}, { total: 10_000, total_is_capped: true }, "More than 10,000 calls."],
  [{}, { total: 1 }, "1 call."],
  [{}, { total: 0, data: [], older: null }, "No calls."],
  [{ tag: "x" }, { total: null }, "More than 2 calls."],
  [
    { tag: "x", status: "failure" },
    { total: null, searched_back_to: "2026-11-20T10:00:00Z" },
    "2 failed calls since 20 Nov, 10:00.",
  ],
  [
    { tag: "x" },
    { total: null, data: [], searched_back_to: "2026-11-20T10:00:00Z" },
    "No calls since 20 Nov, 10:00.",
  ],
  [{ older: "p" }, { total: null }, "Earlier calls."],
  [{ older: "p" }, { total: null, data: [] }, "No calls on this page."],
])("the heading of %j with %j is %s", (choice, changed, title) => {
  const view = viewCalls(
    readCallChoice(choice),
    { ...page, ...changed },
    {},
    "UTC",
    NOW,
  );
  expect(view.title).toBe(title);
  const isCut = "searched_back_to" in changed;
  expect(view.olderLabel).toBe(isCut ? "Search further back" : "Older calls");
  expect(view.searched === null).toBe(!isCut);
});

test("a rejected filter keeps what was typed, next to the reason", () => {
  const choice = readCallChoice({ cost: "much", model: "mock" });
  const none = { models: [], providers: [] };
  const { fields, isOpen } = viewControls(choice, {}, none, {
    cost: "Cost at least must be a number.",
  });
  expect(isOpen).toBe(true);
  expect(fields.find(({ name }) => name === "cost")).toMatchObject({
    value: "much",
    mistake: "Cost at least must be a number.",
  });
  expect(fields.find(({ name }) => name === "model")).toMatchObject({
    value: "mock",
    mistake: undefined,
  });
});
