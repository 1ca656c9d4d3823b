import { expect, test } from "vitest";
import { HOUR_MS } from "../../../core/duration.ts";
import { probeCheck } from "../../../test/supervisor/probe-check.ts";
import type { Pings } from "./probe.ts";

const now = Date.UTC(2026, 10, 21, 12);
const silent: Pings = {
  runningSince: undefined,
  outcome: undefined,
  latestSuccess: undefined,
};

const probe = (
  pings: Partial<Pings>,
  watchedForHours: number = 100,
  expectation: Readonly<Record<string, string>> = {},
) =>
  probeCheck(
    { kind: "heartbeat", expect: expectation },
    {
      now,
      watchedSince: now - watchedForHours * HOUR_MS,
      pings: () => ({ ...silent, ...pings }),
    },
  );

test("a heartbeat waits for the first ping for a limited time", async () => {
  expect(await probe({}, 24)).toMatchObject({
    ok: true,
    text: "waiting for the first ping",
  });
  expect(await probe({}, 26)).toMatchObject({
    ok: false,
    text: "no success for 1 d 2 h, expected every 1 d",
  });
});

test("a success is valid until the next one is overdue", async () => {
  const success = (hoursAgo: number) => ({
    latestSuccess: now - hoursAgo * HOUR_MS,
  });
  expect((await probe(success(24))).ok).toBe(true);
  expect((await probe(success(25.5))).ok).toBe(false);
});

test("a failure lasts until the next success, also during another run", async () => {
  const at = now - HOUR_MS;
  const outcome = { at, kind: "fail", text: "exit code 3" } as const;
  expect(
    await probe({
      outcome,
      runningSince: now,
      latestSuccess: now - 2 * HOUR_MS,
    }),
  ).toMatchObject({
    ok: false,
    text: "failed 1 h ago: exit code 3; last success 2 h ago",
  });
});

test("a run that exceeds its time limit is a failure", async () => {
  const running = {
    runningSince: now - 3 * HOUR_MS,
    latestSuccess: now - HOUR_MS,
  };
  expect((await probe(running)).ok).toBe(true);
  expect((await probe(running, 100, { done_within: "2h" })).ok).toBe(false);
});
