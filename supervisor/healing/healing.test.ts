import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../core/duration.ts";
import { decideHealing } from "./healing.ts";

const rule = {
  restart: "gateway",
  max: 3,
  per: HOUR_MS,
  cooldown: 60_000,
  grace: 0,
  drain: 0,
};
const NOW = 10_000_000;

test("the first restart is immediate", () => {
  expect(decideHealing(rule, [], NOW)).toEqual({ kind: "heal" });
});

test("the cooldown doubles with each restart", () => {
  expect(decideHealing(rule, [NOW - 59_999], NOW).kind).toBe("wait");
  expect(decideHealing(rule, [NOW - 60_000], NOW).kind).toBe("heal");
  expect(decideHealing(rule, [NOW - 500_000, NOW - 119_999], NOW).kind).toBe(
    "wait",
  );
  expect(decideHealing(rule, [NOW - 500_000, NOW - 120_000], NOW).kind).toBe(
    "heal",
  );
});

test("after the maximum of restarts it gives up until the window has passed", () => {
  const three = [NOW - 3_000_000, NOW - 2_000_000, NOW - 1_000_000];
  expect(decideHealing(rule, three, NOW).kind).toBe("gave-up");
  expect(decideHealing(rule, three, NOW + 700_000).kind).toBe("heal");
});

test("a clock that was set back by a day does not prevent restarts", () => {
  const three = [NOW - 3000, NOW - 2000, NOW - 1000];
  expect(decideHealing(rule, three, NOW).kind).toBe("gave-up");
  expect(decideHealing(rule, three, NOW - DAY_MS)).toEqual({ kind: "heal" });
  // After a small change they still count.
  expect(decideHealing(rule, three, NOW - 10_000).kind).toBe("gave-up");
});
