import { expect, test } from "vitest";
import type { Answer } from "./load-connection.ts";
import { Measurements } from "./load-measurements.ts";

const PERIOD = { startedAt: 0, measureFrom: 100, measureUntil: 1_100 };
const OPEN = {
  kind: "open",
  rate: 100,
  warmupMs: 100,
  durationMs: 1_000,
} as const;

const CLOSED = {
  kind: "closed",
  concurrency: 1,
  warmupMs: 100,
  durationMs: 1_000,
} as const;

/** The answer to a call that was due and sent at these times, 5 ms later. */
function answer(since: number, sentAt = since): Answer {
  return {
    status: 200,
    cacheHit: false,
    since,
    sentAt,
    firstByteAt: sentAt + 4,
    endedAt: sentAt + 5,
    text: "",
  };
}

/** 100 calls, the last ones of them sent after the end of the measured time. */
function sent(unsent: number): Measurements {
  const measurements = new Measurements(OPEN, PERIOD);
  for (let call = 0; call < 100; call++) {
    const due = PERIOD.measureFrom + call * 10;
    measurements.add(
      answer(due, call < 100 - unsent ? due + 2 : PERIOD.measureUntil + 50),
    );
  }
  return measurements;
}

test("an open loop keeps its rate if nearly all calls are sent in its time", () => {
  expect(sent(0).result()).toMatchObject({ calls: 100, kept: true });
  expect(sent(1).result()).toMatchObject({ calls: 100, kept: true });
  expect(sent(2).result()).toMatchObject({ calls: 100, kept: false });
});

test("latency starts when a call is due; the generator's own delay is known", () => {
  const result = sent(0).result();
  expect(result.latency).toMatchObject({ p50: 7, max: 7 });
  expect(result.sinceSent).toMatchObject({ p50: 5, max: 5 });
  expect(result.late).toMatchObject({ p50: 2, max: 2 });
  expect(result.firstByte).toMatchObject({ p50: 6, p999: null });
});

test("a target that did not keep up did not keep the rate", () => {
  const measurements = sent(0);
  measurements.giveUp();
  expect(measurements.result()).toMatchObject({ gaveUp: true, kept: false });
});

test("a closed loop counts the answers after its time until each connection has one, over the time that they took", () => {
  const measurements = new Measurements({ ...CLOSED, concurrency: 3 }, PERIOD);
  for (const endedAt of [50, 1_000, 2_095, 3_095, 4_095]) {
    expect(measurements.isTooFew).toBe(endedAt !== 4_095);
    measurements.add(answer(endedAt - 5));
  }
  expect(measurements.result()).toMatchObject({ calls: 3, seconds: 2.995 });
});

test("a closed loop has no rate to keep", () => {
  const measurements = new Measurements(CLOSED, PERIOD);
  measurements.add(answer(500));
  expect(measurements.result()).toMatchObject({
    calls: 1,
    kept: true,
    late: null,
  });
});
