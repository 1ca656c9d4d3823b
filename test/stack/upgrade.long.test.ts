import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createCheckout, type Checkout } from "./checkout.ts";
import { startUpgradeTestbed, type UpgradeTestbed } from "./upgrade-testbed.ts";

// These tests start whole stacks, possibly on busy machines.
vi.setConfig({ testTimeout: 300_000 });

let checkout: Checkout;
let testbed: UpgradeTestbed;
let first: string;

const hearth: UpgradeTestbed["hearth"] = (...words) => testbed.hearth(...words);
const status = () => testbed.status();
const releaseRunning = () => testbed.releaseRunning();
const pidOf = (name: string) => testbed.pidOf(name);

beforeAll(async () => {
  checkout = createCheckout();
  // As in releases before this step existed; upgrades start from them, too.
  checkout.replace(
    "supervisor/runtimes/process/adoption.ts",
    "  await stopLeftSuccessor(spec, history);\n",
    "",
  );
  testbed = await startUpgradeTestbed(checkout);
  first = await releaseRunning();
}, 300_000);

afterAll(() => testbed?.remove(), 120_000);

test("after a pull, only up and upgrade install packages, and a killed service restarts from its release", async () => {
  const gateway = join(checkout.path, "gateway", "program.ts");
  const lock = join(checkout.path, "package-lock.json");
  const before = [gateway, lock].map((path) => readFileSync(path, "utf8"));
  checkout.append("gateway/program.ts", "this is being edited\n");
  const zod = '"node_modules/zod": {\n      "version": "';
  checkout.replace("package-lock.json", zod, `${zod}0`);
  for (const words of [["--help"], ["--version"], ["down", "--help"]]) {
    expect(await hearth(...words)).toMatchObject({ code: 0 });
  }
  const killed = await pidOf("gateway");
  process.kill(killed, "SIGKILL");
  await expect
    .poll(async () => (await status()).ok && (await pidOf("gateway")), {
      timeout: 60_000,
      interval: 500,
    })
    .not.toBeOneOf([false, killed, 0]);
  expect(checkout.npmCalls()).toBe(0);

  const up = await hearth("up");
  expect(up.code).toBe(1);
  expect(up.output).toContain("npm ci failed");
  expect(checkout.npmCalls()).toBe(1);
  expect((await status()).ok).toBe(true);
  [gateway, lock].forEach((path, at) => writeFileSync(path, before[at] ?? ""));
});

test("up reports that another release is running, and doctor that it is behind its checkout", async () => {
  checkout.append("supervisor/main.ts", "// the next version\n");
  const up = await hearth("up");
  expect(up.output).toContain(`as release ${first}`);
  expect(up.output).toContain("`hearth upgrade` switches to it");
  expect(await releaseRunning()).toBe(first);
  const doctor = await hearth("doctor");
  expect(doctor.output).toMatch(/release .* is running; its checkout .* has/);
});

test("an upgrade whose gateway cannot take over is rolled back, and no call fails", async () => {
  checkout.replace(
    "gateway/program.ts",
    "const predecessor = findPredecessor(process.env);",
    "const predecessor = findPredecessor(process.env);\nif (predecessor !== undefined) process.exit(3);",
  );
  const stopCalling = testbed.keepCalling();
  const upgrade = await hearth("upgrade");
  expect(upgrade.code).toBe(1);
  expect(upgrade.output).toContain(
    `did not become healthy; switched back to ${first}`,
  );
  const { calls, failed } = await stopCalling();
  expect(failed).toEqual([]);
  expect(calls).toBeGreaterThan(100);
  expect(await releaseRunning()).toBe(first);
  expect((await status()).ok).toBe(true);
});

test("an upgrade whose supervisor exits while a gateway takes over is rolled back", async () => {
  checkout.replace(
    "gateway/program.ts",
    "\nif (predecessor !== undefined) process.exit(3);",
    "",
  );
  const before = "    const failure = isAlive(running)";
  checkout.replace(
    "supervisor/runtimes/process/hand-over.ts",
    before,
    `process.exit(7);\n${before}`,
  );
  const upgrade = await hearth("upgrade");
  expect(upgrade.code).toBe(1);
  expect(upgrade.output).toContain("is started again");
  expect(upgrade.output).not.toContain("is in use");
  expect(await releaseRunning()).toBe(first);
  expect((await status()).ok).toBe(true);
});

test("an upgrade whose supervisor exits is rolled back", async () => {
  checkout.append("supervisor/main.ts", "process.exit(7);\n");
  const upgrade = await hearth("upgrade");
  expect(upgrade.code).toBe(1);
  expect(upgrade.output).toContain("is started again");
  expect(await releaseRunning()).toBe(first);
});

test("settings that the new release cannot read stop an upgrade before it changes anything", async () => {
  checkout.append("supervisor/main.ts", "// another version\n");
  const own = join(checkout.path, "config", "gateway.local.yaml");
  const before = readFileSync(own, "utf8");
  writeFileSync(own, `${before}router_settings: { num_retries: many }\n`);
  const upgrade = await hearth("upgrade");
  writeFileSync(own, before);
  expect(upgrade.code).toBe(1);
  expect(upgrade.output).toContain("num_retries");
  expect(upgrade.output).toContain("nothing was changed");
  expect(await releaseRunning()).toBe(first);
});
