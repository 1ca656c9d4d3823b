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
  total_pages: 2,
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
    page: "0",
  });
  expect(choice).toMatchObject({ key: "", until: "", page: 1 });
  expect(ledgerQuery(choice)).toBe(
    "/spend/logs/v2?status_filter=failure&model_group=a%2Fb&start_date=2026-11-01&end_date=2100-01-01&page=1&page_size=50",
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
      "/spend/calls?status=failure&model=mock&from=2026-11-01&until=2026-11-21&page=2",
  });
  expect(
    viewCalls(
      { ...choice, status: "", page: 2 },
      { ...page, total: 10_000, total_is_capped: true },
      [],
      "UTC",
    ),
  ).toMatchObject({
    title: "More than 10,000 calls.",
    older: null,
    newer: "/spend/calls?model=mock&from=2026-11-01&until=2026-11-21",
  });
});

test("without calls the heading says so", () => {
  expect(
    viewCalls(readCallChoice({}), { ...page, data: [], total: 0 }, [], "UTC"),
  ).toMatchObject({ title: "No calls.", subline: "all time" });
});
