import { expect, test } from "vitest";
import { advance, newMemory, type CheckState } from "./state.ts";

const thresholds = { failAfter: 3, recoverAfter: 2 };

/** The states that a row of results (+ and -) leads through. */
function walk(results: string): readonly CheckState[] {
  let memory = newMemory(0);
  return [...results].map((result, at) => {
    memory = advance(memory, result === "+", thresholds, at);
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
])("the results %s lead through %j", (results, states) => {
  expect(walk(results)).toEqual(states);
});

test("a state keeps the time at which it began", () => {
  let memory = newMemory(0);
  for (const at of [10, 20, 30]) memory = advance(memory, true, thresholds, at);
  expect(memory).toEqual({ state: "up", since: 10, failures: 0, successes: 3 });
});
