import { expect, test } from "vitest";
import { decideHealing } from "./healing.ts";

const rule = {
  restart: "gateway",
  max: 3,
  per: 3_600_000,
  cooldown: 60_000,
  grace: 0,
};
const now = 10_000_000;

test("the first time it heals at once", () => {
  expect(decideHealing(rule, [], now)).toEqual({ kind: "heal" });
});

test("the cooldown doubles with each restart", () => {
  expect(decideHealing(rule, [now - 59_999], now).kind).toBe("wait");
  expect(decideHealing(rule, [now - 60_000], now).kind).toBe("heal");
  expect(decideHealing(rule, [now - 500_000, now - 119_999], now).kind).toBe(
    "wait",
  );
  expect(decideHealing(rule, [now - 500_000, now - 120_000], now).kind).toBe(
    "heal",
  );
});

test("after as many as allowed it gives up, until the window has passed", () => {
  const three = [now - 3_000_000, now - 2_000_000, now - 1_000_000];
  expect(decideHealing(rule, three, now).kind).toBe("gave-up");
  expect(decideHealing(rule, three, now + 700_000).kind).toBe("heal");
});

test("a clock that was set back by a day keeps no service from being restarted", () => {
  const day = 86_400_000;
  const three = [now - 3000, now - 2000, now - 1000];
  expect(decideHealing(rule, three, now).kind).toBe("gave-up");
  expect(decideHealing(rule, three, now - day)).toEqual({ kind: "heal" });
  // By a little: they count on.
  expect(decideHealing(rule, three, now - 10_000).kind).toBe("gave-up");
});
