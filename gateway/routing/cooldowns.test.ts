import { pino } from "pino";
import { expect, test } from "vitest";
import { Cooldowns, type CountedFailure } from "./cooldowns.ts";

const FAILURE: CountedFailure = {
  status: 500,
  reason: "it failed",
  retryAfterMs: null,
  alone: false,
  hasFallback: false,
  countedBefore: null,
};

function createTestCooldowns() {
  const clock = { at: 1_000_000 };
  const cooledDown: string[] = [];
  const cooldowns = new Cooldowns({
    router: () => ({
      allowedFails: 3,
      cooldownMs: 60_000,
      cooldownFailureRatio: 0.5,
      cooldownMinimumCalls: 5,
    }),
    redis: null,
    log: pino({ level: "silent" }),
    onCooldown: (id) => cooledDown.push(id),
    now: () => clock.at,
  });
  const fail = (calls: number, failure: Partial<CountedFailure> = {}) => {
    for (let call = 0; call < calls; call++) {
      cooldowns.failed("a", { ...FAILURE, ...failure });
    }
  };
  const answer = (calls: number) => {
    for (let call = 0; call < calls; call++) {
      cooldowns.answered("a");
    }
  };
  return { clock, cooldowns, cooledDown, fail, answer };
}

test("a deployment cools down after more than three failures among at least five calls, half of which failed", () => {
  const few = createTestCooldowns();
  few.fail(4);
  expect(few.cooldowns.cooling("a")).toBeNull();
  few.fail(1);
  expect(few.cooldowns.cooling("a")).toMatchObject({
    until: few.clock.at + 60_000,
  });
  expect(few.cooledDown).toEqual(["a"]);

  const mostlyFine = createTestCooldowns();
  mostlyFine.answer(150);
  mostlyFine.fail(149);
  expect(mostlyFine.cooldowns.cooling("a")).toBeNull();
  mostlyFine.fail(1);
  expect(mostlyFine.cooldowns.cooling("a")).not.toBeNull();
});

test("failures and calls of an earlier minute do not count", () => {
  const { clock, cooldowns, fail, answer } = createTestCooldowns();
  answer(100);
  fail(4);
  clock.at += 60_000;
  fail(4);
  expect(cooldowns.cooling("a")).toBeNull();
  fail(1);
  expect(cooldowns.cooling("a")).not.toBeNull();
});

test("a further attempt of a counted call does not count", () => {
  const { cooldowns, fail } = createTestCooldowns();
  fail(4);
  fail(10, { countedBefore: "failure" });
  expect(cooldowns.cooling("a")).toBeNull();
});

test("a call that had been answered when it failed is one call, also in the minute after", () => {
  const { clock, cooldowns, fail, answer } = createTestCooldowns();
  answer(5);
  fail(4, { countedBefore: "answer" });
  expect(cooldowns.stateOf("a")).toMatchObject({ calls: 5, failures: 4 });
  expect(cooldowns.cooling("a")).not.toBeNull();
  clock.at += 60_000;
  fail(5, { countedBefore: "answer" });
  expect(cooldowns.stateOf("a")).toMatchObject({ calls: 5, failures: 5 });
  expect(cooldowns.cooling("a")).not.toBeNull();
});

test("the only deployment of an alias cools down for a 429 that names a time, and for nothing else", () => {
  const { clock, cooldowns, fail } = createTestCooldowns();
  fail(50, { alone: true });
  fail(50, { alone: true, status: 429 });
  expect(cooldowns.cooling("a")).toBeNull();
  fail(1, { alone: true, status: 429, retryAfterMs: 7_000 });
  expect(cooldowns.cooling("a")).toMatchObject({ until: clock.at + 7_000 });
});

test("the only deployment of an alias cools down for failing too often if calls can go to a fallback, not for one 429", () => {
  const { clock, cooldowns, fail } = createTestCooldowns();
  fail(4, { alone: true, hasFallback: true, status: 429 });
  expect(cooldowns.cooling("a")).toBeNull();
  fail(1, { alone: true, hasFallback: true });
  expect(cooldowns.cooling("a")).toMatchObject({
    until: clock.at + 60_000,
    requested: false,
  });
});

test("a deployment cools down at once after a 429 if others can take the calls", () => {
  const { clock, cooldowns, fail } = createTestCooldowns();
  fail(1, { status: 429, countedBefore: "failure" });
  expect(cooldowns.cooling("a")).toMatchObject({ until: clock.at + 60_000 });
  clock.at += 60_000;
  expect(cooldowns.cooling("a")).toBeNull();
});

test("names without calls are forgotten", () => {
  const { clock, cooldowns } = createTestCooldowns();
  for (let name = 0; name < 1_000; name++) {
    cooldowns.answered(`wild|${name}`);
  }
  expect(cooldowns.observed()).toBe(1_000);
  clock.at += 60_000;
  cooldowns.answered("wild|again");
  expect(cooldowns.observed()).toBe(1);
});

test("a cooldown does not last longer than its time after the clock was set back, except for a small correction", () => {
  const { clock, cooldowns, fail } = createTestCooldowns();
  fail(5);
  const start = clock.at;
  clock.at = start - 30_000;
  expect(cooldowns.cooling("a")).not.toBeNull();
  clock.at = start - 3_600_000;
  expect(cooldowns.cooling("a")).toBeNull();
  // The failures before were of another minute.
  fail(4);
  expect(cooldowns.cooling("a")).toBeNull();
});

test("a provider that asks for a longer time than any quota lasts cools down for 31 days", () => {
  const { clock, cooldowns, fail } = createTestCooldowns();
  fail(1, { status: 429, retryAfterMs: 1e303 });
  expect(cooldowns.cooling("a")?.until).toBe(clock.at + 31 * 86_400_000);
});

test("cooldowns that have ended make room for others, those that last do not", () => {
  const { clock, cooldowns } = createTestCooldowns();
  const limit = (id: string) =>
    cooldowns.failed(id, { ...FAILURE, status: 429, retryAfterMs: 5_000 });
  for (let model = 0; model < 10_000; model++) {
    limit(`wildcard\0${model}`);
  }
  limit("a");
  expect(cooldowns.cooling("a")).toBeNull();
  clock.at += 5_000;
  limit("a");
  expect(cooldowns.cooling("a")).not.toBeNull();
});
