import type { Logger } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DAY_MS, HOUR_MS } from "../../core/duration.ts";
import type { Pool } from "../database/pool.ts";
import { createRetention } from "./retention.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Each round fails at its first statement. */
function start() {
  const failed = vi.fn();
  const retention = createRetention({
    pool: {} as Pool,
    config: () => ({ spendLogDays: 30, auditLogDays: 30 }) as never,
    log: { warn: failed } as unknown as Logger,
  });
  retention.start();
  return { failed, retention };
}

test("nothing is deleted while a machine that has just started may not have set its clock", async () => {
  const { failed, retention } = start();
  await vi.advanceTimersByTimeAsync(540_000);
  expect(failed).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(failed).toHaveBeenCalledOnce();
  await vi.advanceTimersByTimeAsync(HOUR_MS);
  expect(failed).toHaveBeenCalledTimes(2);
  retention.stop();
});

test("a gateway that stops before has deleted nothing", async () => {
  const { failed, retention } = start();
  retention.stop();
  await vi.advanceTimersByTimeAsync(DAY_MS);
  expect(failed).not.toHaveBeenCalled();
});
