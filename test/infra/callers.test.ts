import { afterEach, beforeEach, expect, test } from "vitest";
import {
  startProviderProcess,
  type ProviderProcess,
} from "../servers/provider-process.ts";
import { startMockProvider } from "../servers/provider.ts";
import { callSteadily, expectNoFailedCall, MAX_WAIT_MS } from "./callers.ts";

let provider: ProviderProcess;
beforeEach(async () => {
  provider = await startProviderProcess();
});
afterEach(() => provider.stop());

const load = (url: string) =>
  callSteadily({
    baseUrls: [url.replace(/\/v1$/, "")],
    key: "sk-test",
    perSecond: 50,
  });

test("calls continue while this process is blocked, and their longest waits are reported", async () => {
  const callers = load(provider.url);
  await expect
    .poll(() => provider.requests.size, { timeout: 10_000 })
    .toBeGreaterThan(0);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
  const report = await callers.stop();
  // This process alone would have sent one or two.
  expect(report.calls).toBeGreaterThan(10);
  expect(report.streams).toBe(Math.floor(report.calls / 5));
  const { answer, firstByte, stream } = report.longestMs;
  expect(answer).toBeGreaterThan(0);
  expect(firstByte).toBeGreaterThan(0);
  expect(stream).toBeGreaterThan(firstByte);
  expectNoFailedCall(report, MAX_WAIT_MS.upgrade, () => undefined);
  const lessThanWaited = Math.max(answer, firstByte) - 1;
  expect(() =>
    expectNoFailedCall(report, lessThanWaited, () => undefined),
  ).toThrow();
});

test("failed responses are reported with their status", async () => {
  const sick = await startMockProvider({ alwaysStatus: 500 });
  try {
    const callers = load(sick.url);
    await expect
      .poll(() => sick.requests.length, { timeout: 10_000 })
      .toBeGreaterThan(5);
    const report = await callers.stop();
    expect(report.failures).toHaveLength(report.calls);
    expect(report.failures[0]).toContain(": 500 ");
    expect(() =>
      expectNoFailedCall(report, MAX_WAIT_MS.upgrade, () => undefined),
    ).toThrow();
  } finally {
    await sick.close();
  }
});
