import { expect, test } from "vitest";
import { readinessOfAll, type Readiness } from "./readiness.ts";

const READY: Readiness = {
  status: "connected",
  connected: true,
  writable: true,
  cache: "redis",
  limits: "redis",
  pending: 2,
};

test("several workers are ready when all of them are", () => {
  expect(readinessOfAll(READY, [READY, READY])).toEqual({
    ...READY,
    pending: 4,
  });
});

test.each([
  ["is being restarted", null, { status: "starting", pending: 2 }],
  [
    "has no database yet",
    { ...READY, status: "starting", connected: false },
    { status: "starting", connected: false },
  ],
  ["stops", { ...READY, status: "stopping" }, { status: "stopping" }],
  [
    "has a full journal",
    { ...READY, status: "journal_full" },
    { status: "journal_full" },
  ],
] as const)("they are not while one %s", (_name, other, shown) => {
  const expected = { ...READY, pending: 4, ...shown };
  expect(readinessOfAll(READY, [READY, other])).toEqual(expected);
});

test("one whose rows the database does not take is shown", () => {
  const stuck: Readiness = { ...READY, writable: false };
  expect(readinessOfAll(READY, [READY, stuck])).toMatchObject({
    status: "connected",
    connected: true,
    writable: false,
  });
});

test("limits of one that has lost Redis are shown", () => {
  const away: Readiness = { ...READY, limits: "redis_away" };
  expect(readinessOfAll(READY, [READY, away]).limits).toBe("redis_away");
});
