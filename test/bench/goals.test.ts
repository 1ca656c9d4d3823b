import { expect, test } from "vitest";
import { goalsOf } from "./goals.ts";
import type { Latency } from "./latencies.ts";
import type { Run } from "./measure.ts";
import { describeMeasurements, describeResults } from "./report.ts";
import { addedBy, ratiosOf, type Results } from "./results.ts";

const DEFAULTS: Omit<Run, "target" | "load" | "mode"> = {
  concurrency: null,
  rate: null,
  tenants: null,
  calls: 5_000,
  calls_per_second: 1_000,
  latency_ms: null,
  late_ms: null,
  kept_rate: true,
  first_byte_ms: null,
  cache_hit_rate: null,
  hit_latency_ms: null,
  errors: 0,
  first_error: null,
  cpu_ms_per_call: 0.1,
  all_cpu_ms_per_call: null,
  rss_mb: 150,
  event_loop_delay_ms: { p50: 0.1, p99: 1, max: 8, pauses_over_10_ms: 0 },
  journal_behind: null,
};

function closed(
  target: Run["target"],
  load: Run["load"],
  calls_per_second: number,
): Run {
  const mode = "closed";
  return { ...DEFAULTS, target, load, mode, concurrency: 64, calls_per_second };
}

function open(
  target: Run["target"],
  load: Run["load"],
  rate: number,
  latency: Latency,
  more: Partial<Run> = {},
): Run {
  return {
    ...DEFAULTS,
    target,
    load,
    mode: "open",
    rate,
    latency_ms: latency,
    ...(load === "stream" ? { first_byte_ms: latency } : {}),
    ...more,
  };
}

function latency(p50: number, p99: number, p999: number | null): Latency {
  return { p50, p99, p999, max: 99 };
}

function resultsOf(runs: readonly Run[]): Results {
  return {
    runs,
    ratios: ratiosOf(runs),
    added: addedBy(runs),
    frontier: [],
    peers: [],
    proofs: [],
    gateway: {
      ready_ms: 500,
      rss_after_start_mb: 100,
      rss_most_mb: 210,
      rss_at_end_mb: 190,
    },
    expenses: {
      ledger_bytes_per_call: 1,
      wal_bytes_per_call: 1,
      postgres_transactions_per_call: 1,
      redis_scripts_per_call: 1,
      redis_micros_per_call: 1,
    },
    left_out: 0,
    machine: {
      cpu: "CPU",
      cores: 2,
      memory_gb: 24,
      system: "linux",
      node: "v24",
      date: "2026-11-26",
      load_before: 0,
    },
  };
}

function goals(runs: readonly Run[]) {
  return goalsOf(resultsOf(runs)).map(({ name, measured, reached }) => [
    name,
    measured,
    reached,
  ]);
}

test("calls/s are compared to the bare proxy, and cached answers to its plain ones", () => {
  const runs = [
    closed("bare", "plain", 10_000),
    { ...closed("gateway", "plain", 3_400), all_cpu_ms_per_call: 0.5 },
    closed("portkey", "plain", 1_000),
    closed("gateway", "cached", 6_100),
  ];
  expect(
    ratiosOf(runs).map(({ to, load, ratio }) => [to, load, ratio]),
  ).toEqual([
    ["bare", "plain", 0.34],
    ["portkey", "plain", 3.4],
    ["bare", "cached", 0.61],
  ]);
  expect(goals(runs).slice(0, 3)).toEqual([
    ["plain, calls/s to bare at 64 connections", "0.34", false],
    ["cached, calls/s to bare at 64 connections", "0.61", true],
    [
      "CPU of gateway, Redis and Postgres for a plain call at 64 connections",
      "0.5 ms",
      false,
    ],
  ]);
});

test("the tail is what the gateway adds to the provider's at every rate, of streams to their first byte", () => {
  const runs = [250, 500, 1_000].flatMap((rate) => [
    open("mock", "plain", rate, latency(0.5, 1, 2)),
    open("gateway", "plain", rate, latency(1.2, rate === 500 ? 7 : 5, 16)),
    open("mock", "stream", rate, latency(1, 2, null)),
    open("gateway", "stream", rate, latency(1.5, 3, null)),
  ]);
  expect(goals(runs).slice(0, 5)).toEqual([
    [
      "added to plain calls at 250, 500, 1000 calls/s, p50",
      "0.7, 0.7, 0.7 ms",
      true,
    ],
    [
      "added to plain calls at 250, 500, 1000 calls/s, p99",
      "4, 6, 4 ms",
      false,
    ],
    [
      "added to plain calls at 250, 500, 1000 calls/s, p99.9",
      "14, 14, 14 ms",
      true,
    ],
    [
      "added to the first byte of streams at 250, 500, 1000 calls/s, p50",
      "0.5, 0.5, 0.5 ms",
      true,
    ],
    [
      "added to the first byte of streams at 250, 500, 1000 calls/s, p99",
      "1, 1, 1 ms",
      true,
    ],
  ]);
});

test("what a streamed chunk costs is measured at the lowest rate", () => {
  const runs = [50, 1_000].flatMap((rate) => [
    open("mock", "stream", rate, latency(1, 2, null)),
    open("gateway", "stream", rate, latency(rate === 50 ? 7.4 : 99, 99, null)),
  ]);
  expect(goals(runs)).toContainEqual([
    "added to each streamed chunk at 50 calls/s",
    "0.1 ms",
    true,
  ]);
});

test("a rate that was not kept misses its goals, however short the latency of what was answered", () => {
  const runs = [
    open("mock", "plain", 250, latency(0.5, 1, 2)),
    open("gateway", "plain", 250, latency(0.6, 1, 2), { kept_rate: false }),
    open("gateway", "cached", 250, latency(0.6, 1, 2), { kept_rate: false }),
  ];
  expect(addedBy(runs)).toEqual([]);
  expect(goals(runs)).toContainEqual([
    "added to plain calls at 250 calls/s, p99",
    "not kept",
    false,
  ]);
});

test("memory and pauses have goals; what was not measured has none", () => {
  expect(goals([closed("mock", "plain", 9)])).toEqual([
    ["memory at most", "210 MB", false],
    ["ready after the start", "500 ms", true],
  ]);
  expect(
    goals([open("gateway", "plain", 250, latency(1, 2, 3))]),
  ).toContainEqual([
    "longest pause of the event loop up to 1000 calls/s",
    "8 ms",
    true,
  ]);
});

test("the report compares with each peer by its version, and shows rates that a peer does not keep", () => {
  const runs = [
    closed("gateway", "plain", 3_000),
    closed("portkey", "plain", 1_500),
    closed("litellm", "plain", 75),
    open("mock", "plain", 250, latency(0.5, 1, 2)),
    open("litellm", "plain", 250, latency(900, 990, 999), { kept_rate: false }),
  ];
  const peers = [
    { name: "portkey", title: "Portkey", version: "1.2.3" },
    { name: "litellm", title: "LiteLLM", version: "4.5.6" },
  ] as const;
  const results = { ...resultsOf(runs), peers };
  const report = describeResults(results) + describeMeasurements(results);
  expect(report).toContain("compared to Portkey 1.2.3 and LiteLLM 4.5.6");
  expect(report).toMatch(/\| plain +\| 64 +\| 2\.0 × +\| 40\.0 × +\|/);
  expect(report).toMatch(/\| plain \| 250, not kept \| litellm +\| 900\.00 /);
});
