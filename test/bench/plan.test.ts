import { expect, test } from "vitest";
import type { BenchOptions } from "./options.ts";
import {
  isHopeless,
  planSteps,
  type Measured,
  type Step,
  type TargetName,
} from "./plan.ts";

const OPTIONS: BenchOptions = {
  quick: false,
  json: false,
  write: false,
  peers: [],
  loads: ["plain", "stream", "cached", "50k"],
  concurrency: [64],
  rates: [250, 500, 1_000, 2_000],
  frontier: [],
  seconds: 5,
  warmupSeconds: 1,
};

function openLoops(target: TargetName) {
  return planSteps(OPTIONS, ["mock", "bare", "gateway", "portkey"]).flatMap(
    ({ target: name, load, schedule }) =>
      name === target && schedule.kind === "open"
        ? [`${load} ${schedule.rate}: ${schedule.durationMs} ms`]
        : [],
  );
}

test("the tail of plain calls, streams and cached answers is measured at each rate that has a goal, long enough for p99.9", () => {
  expect(openLoops("gateway")).toEqual([
    "plain 250: 12000 ms",
    "plain 500: 6000 ms",
    "plain 1000: 5000 ms",
    "plain 2000: 5000 ms",
    "stream 50: 5000 ms",
    "stream 250: 12000 ms",
    "stream 500: 6000 ms",
    "stream 1000: 5000 ms",
    "cached 250: 12000 ms",
    "cached 500: 6000 ms",
    "cached 1000: 5000 ms",
    "50k 100: 5000 ms",
  ]);
  expect(openLoops("portkey")).toEqual(
    openLoops("gateway").filter((name) => !name.startsWith("cached")),
  );
});

test("every program gets the same warm-up before its first measurement of a load, long enough to compile its code", () => {
  const warmups = planSteps({ ...OPTIONS, concurrency: [64, 1] }, [
    "mock",
    "bare",
    "gateway",
    "portkey",
  ]).flatMap(({ target, load, schedule }) =>
    schedule.kind === "closed" && load === "stream"
      ? [`${target} ${schedule.concurrency}: ${schedule.warmupMs} ms`]
      : [],
  );
  expect(warmups).toEqual([
    "mock 64: 1000 ms",
    "bare 64: 10000 ms",
    "gateway 64: 10000 ms",
    "portkey 64: 10000 ms",
    "mock 1: 1000 ms",
    "bare 1: 1000 ms",
    "gateway 1: 1000 ms",
    "portkey 1: 1000 ms",
  ]);
});

function step(target: TargetName, rate: number): Step {
  const schedule = { kind: "open", rate, warmupMs: 0, durationMs: 1 } as const;
  return { target, load: "plain", schedule, tenants: 5 };
}

test("a peer is not measured at rates that it cannot keep", () => {
  const closed: Measured = {
    target: "litellm",
    load: "plain",
    mode: "closed",
    rate: null,
    kept_rate: true,
    calls_per_second: 74,
  };
  expect(isHopeless(step("litellm", 140), [closed])).toBe(false);
  expect(isHopeless(step("litellm", 250), [closed])).toBe(true);
  expect(isHopeless(step("portkey", 250), [closed])).toBe(false);
  const missed: Measured = {
    ...closed,
    target: "portkey",
    mode: "open",
    rate: 500,
    kept_rate: false,
  };
  expect(isHopeless(step("portkey", 250), [missed])).toBe(false);
  expect(isHopeless(step("portkey", 1_000), [missed])).toBe(true);
  const ours: Measured = { ...missed, target: "gateway" };
  expect(isHopeless(step("gateway", 1_000), [ours])).toBe(false);
});
