import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createCheckout, type Checkout } from "./checkout.ts";
import { startUpgradeTestbed, type UpgradeTestbed } from "./upgrade-testbed.ts";

// This test starts whole stacks, possibly on busy machines.
vi.setConfig({ testTimeout: 300_000 });

let checkout: Checkout;
let testbed: UpgradeTestbed;

beforeAll(async () => {
  checkout = createCheckout();
  testbed = await startUpgradeTestbed(checkout);
}, 300_000);

afterAll(() => testbed?.remove(), 120_000);

test("no call fails during an upgrade and a rollback under load", async () => {
  const { hearth, status, pidOf, releaseRunning } = testbed;
  const first = await releaseRunning();
  const supervisor = (await status()).supervisor.pid;
  const postgres = await pidOf("postgres");
  checkout.append("supervisor/main.ts", "// the next version\n");
  const stopCalling = testbed.keepCalling();
  const upgrade = await hearth("upgrade");
  expect(upgrade).toMatchObject({ code: 0 });
  expect(upgrade.output).toContain("no migrations");
  const second = await releaseRunning();
  expect(second).not.toBe(first);
  const back = await hearth("upgrade", "--back");
  expect(back).toMatchObject({ code: 0 });
  expect(await releaseRunning()).toBe(first);
  const { calls, failed } = await stopCalling();
  expect(failed).toEqual([]);
  expect(calls).toBeGreaterThan(100);
  await expect.poll(testbed.ledgerCalls, { timeout: 30_000 }).toBe(calls);
  expect((await status()).supervisor.pid).toBe(supervisor);
  expect(await pidOf("postgres")).toBe(postgres);
});
