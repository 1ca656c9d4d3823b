import { expect, test } from "vitest";
import type { CallPage } from "../../../supervisor/gateway/usage.ts";
import {
  callsHref,
  ledgerQuery,
  readCallChoice,
  viewCalls,
} from "./calls-view.ts";

const token = "a".repeat(64);

const page: CallPage = {
  data: [
    {
      request_id: "call-2",
      endTime: "2026-11-21T10:00:00.000Z",
      model_group: "mock",
      spend: 0,
      total_tokens: 0,
      cache_hit: "False",
      status: "failure",
      payer: null,
      request_duration_ms: 20,
      api_key: token,
      metadata: { user_api_key_alias: "anna", error_information: null },
    },
    {
      request_id: "call-1",
      endTime: "2026-11-21T09:00:00.000Z",
      model_group: "mock",
      spend: 0,
      total_tokens: 0,
      cache_hit: "False",
      status: "failure",
      payer: null,
      request_duration_ms: 20,
      api_key: null,
      metadata: { user_api_key_alias: null, error_information: null },
    },
  ],
  total: 52,
  total_is_capped: false,
  next_cursor: "call-1",
};

test("an address names the calls, invalid parts select all", () => {
  const href = callsHref({
    status: "failure",
    model: "a/b",
    from: "2026-11-01",
  });
  expect(href).toBe("/spend/calls?status=failure&model=a%2Fb&from=2026-11-01");
  const choice = readCallChoice({
    status: "failure",
    key: "nonsense",
    model: "a/b",
    from: "2026-11-01",
    until: "yesterday",
    older: ["a", "b"],
  });
  expect(choice).toMatchObject({ key: "", until: "", older: "" });
  expect(ledgerQuery(choice)).toBe(
    "/spend/logs/v2?status_filter=failure&model_group=a%2Fb&start_date=2026-11-01&end_date=2100-01-01&page_size=50",
  );
});

test("a page of calls names its choice, and links to keys and to older calls", () => {
  const choice = readCallChoice({
    status: "failure",
    model: "mock",
    from: "2026-11-01",
    until: "2026-11-21",
  });
  expect(viewCalls(choice, page, ["user Anna"], "UTC")).toMatchObject({
    title: "52 failed calls.",
    look: "warn",
    subline: "user Anna · model mock · from 2026-11-01 to 2026-11-21",
    calls: [
      { key: { name: "anna", href: `/keys/${token}` } },
      { key: { name: "master key", href: null } },
    ],
    newer: null,
    older:
      "/spend/calls?status=failure&model=mock&from=2026-11-01&until=2026-11-21&older=call-1",
  });
  expect(
    viewCalls(
      { ...choice, status: "", older: "call-3" },
      { ...page, total: 10_000, total_is_capped: true, next_cursor: null },
      [],
      "UTC",
    ),
  ).toMatchObject({
    title: "More than 10,000 calls.",
    older: null,
    newer:
      "/spend/calls?model=mock&from=2026-11-01&until=2026-11-21&newer=call-2",
  });
});

test("newer calls continue from the first one shown, and are shown newest first", () => {
  const choice = readCallChoice({ status: "failure", newer: "call-0" });
  expect(ledgerQuery(choice)).toBe(
    "/spend/logs/v2?status_filter=failure&cursor=call-0&sort_order=asc&start_date=2000-01-01&end_date=2100-01-01&page_size=50",
  );
  const oldestFirst = {
    ...page,
    data: page.data.toReversed(),
    next_cursor: "call-2",
  };
  expect(viewCalls(choice, oldestFirst, [], "UTC")).toMatchObject({
    calls: [{ at: "21 Nov, 10:00" }, { at: "21 Nov, 09:00" }],
    newer: "/spend/calls?status=failure&newer=call-2",
    older: "/spend/calls?status=failure&older=call-1",
    statuses: [{ href: "/spend/calls" }, {}, {}, {}],
  });
});

test("without calls the heading says so", () => {
  expect(
    viewCalls(readCallChoice({}), { ...page, data: [], total: 0 }, [], "UTC"),
  ).toMatchObject({ title: "No calls.", subline: "all time" });
});
