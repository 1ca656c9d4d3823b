import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { programEnv } from "../servers/program-env.ts";
import { hasRedisServer } from "../servers/redis.ts";
import type { ScaleResults } from "./scale-bench.ts";
import { ceilingsOf, forecast } from "./scale-forecast.ts";

const BENCH = fileURLToPath(new URL("./scale.ts", import.meta.url));
const COSTS = {
  gateway_cpu_ms: 0.5,
  redis_cpu_ms: 0.1,
  postgres_cpu_ms: 0.08,
  redis_scripts: 0.4,
  ledger_bytes: 700,
  wal_bytes: 1_300,
};

test("what calls need is their cost times their rate", () => {
  expect(forecast(COSTS, 1_000)).toEqual({
    calls_per_second: 1_000,
    gateway_cores: 0.5,
    redis_core_percent: 10,
    redis_scripts_per_second: 400,
    ledger_rows_per_second: 1_000,
    postgres_cores: 0.1,
    ledger_gb_per_day: 60,
    wal_gb_per_day: 112,
  });
  expect(forecast(COSTS, 100_000)).toMatchObject({
    gateway_cores: 50,
    redis_core_percent: 1_000,
    ledger_gb_per_day: 6_048,
  });
});

test.each([
  [COSTS, ["Redis", 10_000]],
  [{ ...COSTS, postgres_cpu_ms: 4 }, ["a Postgres", 4_000]],
  [{ ...COSTS, ledger_bytes: 3_000 }, ["a disk", 3_858]],
] as const)(
  "the part that is fully used first is named",
  (costs, [part, rate]) => {
    const [ceiling] = ceilingsOf(costs);
    expect(ceiling?.part).toContain(part);
    expect(ceiling?.calls_per_second).toBe(rate);
  },
);

test.runIf(hasRedisServer())(
  "npm run bench:scale measures more gateways with each run, and every call is in the ledger",
  async () => {
    const args = [
      "--instances",
      "1,2",
      "--workers",
      "1,2",
      "--drains",
      "2",
      "--connections",
      "4",
    ];
    const child = spawn(
      process.execPath,
      [BENCH, ...args, "--seconds", "0.3", "--json"],
      { stdio: ["ignore", "pipe", "pipe"], env: programEnv() },
    );
    const ended = once(child, "exit") as Promise<[number | null]>;
    const [out, errors, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      ended,
    ]);
    expect(code, errors).toBe(0);
    const results = JSON.parse(out) as ScaleResults;
    expect(results.complete).toBe(true);
    expect(results.runs.map(({ instances }) => instances)).toEqual([1, 2]);
    for (const run of results.runs) {
      expect(run.calls_per_second).toBeGreaterThan(0);
      expect(run.gateway_cpu_ms).toBeGreaterThan(0);
      expect(run.redis_cpu_ms).toBeGreaterThan(0);
    }
    expect(results.workers.map(({ workers }) => workers)).toEqual([1, 2]);
    expect(results.workers.map(({ errors }) => errors)).toEqual([0, 0]);
    expect(results.drains.map(({ loops }) => loops)).toEqual([2]);
    expect(results.forecasts).toHaveLength(3);
  },
);
