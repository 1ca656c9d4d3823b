import type { Logger } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
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
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(failed).toHaveBeenCalledTimes(2);
  retention.stop();
});

test("a gateway that stops before has deleted nothing", async () => {
  const { failed, retention } = start();
  retention.stop();
  await vi.advanceTimersByTimeAsync(86_400_000);
  expect(failed).not.toHaveBeenCalled();
});
