import { expect, test } from "vitest";
import type { Call } from "../../../supervisor/gateway/usage.ts";
import { latencyOf, viewCall } from "./call-rows.ts";

const NOW = Date.UTC(2026, 10, 22);

const call: Call = {
  request_id: "call-1",
  endTime: "2026-11-21T10:00:00.000Z",
  model_group: "mock",
  spend: 0.5,
  total_tokens: 1400,
  cache_hit: "False",
  status: "success",
  payer: null,
  request_duration_ms: 250,
  api_key: "a".repeat(64),
  metadata: { user_api_key_alias: "anna", error_information: null },
};

test("a call shows its result, latency and error", () => {
  expect(viewCall(call, "UTC", NOW)).toEqual({
    at: "21 Nov, 10:00",
    href: "/spend/calls/call-1",
    model: "mock",
    look: "ok",
    word: "answered",
    error: "",
    latency: "250 ms",
    tokens: "1,400",
    spend: "$ 0.50",
  });
  const failed: Call = {
    ...call,
    status: "failure",
    model_group: null,
    metadata: {
      user_api_key_alias: null,
      error_information: { error_message: "The provider answered 500." },
    },
  };
  expect(viewCall(failed, "UTC", NOW)).toMatchObject({
    model: "unknown",
    look: "bad",
    word: "failed",
    error: "The provider answered 500.",
  });
  expect(viewCall(call, "UTC", Date.UTC(2027, 10, 21)).at).toBe(
    "21 Nov 2026, 10:00",
  );
  expect(viewCall({ ...call, payer: "key:a" }, "UTC", NOW)).toMatchObject({
    model: "manual correction or import",
    latency: "",
  });
});

test("the latency is that of answers by providers, with a 95th percentile of many", () => {
  const took = (ms: number, changed: Partial<Call> = {}): Call => ({
    ...call,
    ...changed,
    request_duration_ms: ms,
  });
  expect(latencyOf([took(9000, { status: "failure" })])).toBeNull();
  expect(
    latencyOf([took(200), took(1, { cache_hit: "True" }), took(300)]),
  ).toEqual({ median: "200 ms", note: "median of the last 2 answers" });
  expect(
    latencyOf(Array.from({ length: 20 }, (_, at) => took((at + 1) * 10))),
  ).toEqual({
    median: "100 ms",
    note: "median of the last 20 answers, 95 % within 190 ms",
  });
});
