import { expect, test } from "vitest";
import { DAY_MS, MINUTE_MS } from "../../core/duration.ts";
import { advance, enter, newMemory, type CheckState } from "./state.ts";

const thresholds = { failAfter: 3, recoverAfter: 2 };

const looks = { "+": "ok", "-": "failed", e: "excused" } as const;

/** The states after a series of probes (+ ok, - failed, e excused). */
function walk(results: string): readonly CheckState[] {
  let memory = newMemory(0);
  return [...results].map((result, at) => {
    const look = looks[result as keyof typeof looks];
    memory = advance(memory, look, thresholds, at);
    return memory.state;
  });
}

test.each<[string, readonly CheckState[]]>([
  ["+", ["up"]],
  ["---", ["pending", "pending", "down"]],
  ["+-+", ["up", "pending", "up"]],
  ["+--+--", ["up", "pending", "pending", "up", "pending", "pending"]],
  ["+---", ["up", "pending", "pending", "down"]],
  ["---+-++", ["pending", "pending", "down", "down", "down", "down", "up"]],
  ["+eeeee", ["up", "pending", "pending", "pending", "pending", "pending"]],
  ["+ee--e-", ["up", ...Array<CheckState>(6).fill("pending")]],
  ["+ee---", ["up", ...Array<CheckState>(4).fill("pending"), "down"]],
  ["---eee", ["pending", "pending", "down", "down", "down", "down"]],
])("the results %s lead through %j", (results, states) => {
  expect(walk(results)).toEqual(states);
});

test("a state keeps its start time", () => {
  let memory = newMemory(0);
  for (const at of [10, 20, 30]) {
    memory = advance(memory, "ok", thresholds, at);
  }
  expect(memory).toEqual({
    state: "up",
    since: 10,
    failures: 0,
    successes: 3,
    changes: [],
    flapping: false,
  });
});

const quick = { failAfter: 1, recoverAfter: 1 };

test("more than four changes in ten minutes are flapping, until one state lasts for ten", () => {
  let memory = advance(newMemory(0), "ok", quick, 0);
  const flapping: boolean[] = [];
  for (let at = 1; at <= 5; at += 1) {
    const look = at % 2 === 1 ? "failed" : "ok";
    memory = advance(memory, look, quick, at * MINUTE_MS);
    flapping.push(memory.flapping);
  }
  expect(flapping).toEqual([false, false, false, false, true]);
  memory = advance(memory, "ok", quick, 6 * MINUTE_MS);
  expect(advance(memory, "ok", quick, 15 * MINUTE_MS).flapping).toBe(true);
  expect(advance(memory, "ok", quick, 16 * MINUTE_MS).flapping).toBe(false);
});

test("four changes in ten minutes, or five in a longer time, are not flapping", () => {
  let memory = advance(newMemory(0), "ok", quick, 0);
  for (let at = 1; at <= 9; at += 1) {
    const look = at % 2 === 1 ? "failed" : "ok";
    memory = advance(memory, look, quick, at * 2.5 * MINUTE_MS);
    expect(memory.flapping).toBe(false);
  }
});

test("pending is no change, nor are pauses and maintenance", () => {
  let memory = advance(newMemory(0), "ok", thresholds, 0);
  for (let at = 1; at <= 20; at += 1) {
    memory = advance(memory, at % 2 ? "failed" : "ok", thresholds, at * 1000);
  }
  memory = enter(memory, "maintenance", 21_000);
  memory = enter(memory, "new", 22_000);
  expect(memory.changes).toEqual([]);
  expect(memory.flapping).toBe(false);
});

test.each<CheckState>(["paused", "maintenance", "new"])(
  "a %s check stops flapping and starts with reset counts afterwards",
  (state) => {
    let memory = newMemory(0);
    for (let at = 1; at <= 8; at += 1) {
      memory = advance(memory, at % 2 ? "failed" : "ok", quick, at);
    }
    expect(memory.flapping).toBe(true);
    memory = enter(memory, state, 10);
    expect(memory).toEqual({ ...newMemory(10), state });
    expect(enter(memory, state, 20).since).toBe(10);
  },
);

test("flapping ends even if the clock was set back meanwhile", () => {
  let memory = newMemory(DAY_MS);
  const look = (state: "up" | "down", at: number) => {
    memory = enter(memory, state, at);
  };
  for (const state of ["up", "down", "up", "down", "up", "down"] as const) {
    look(state, DAY_MS);
  }
  expect(memory.flapping).toBe(true);
  look("down", 1);
  expect(memory.flapping).toBe(false);
});
