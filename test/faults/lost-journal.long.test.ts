import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, inject, test } from "vitest";
import { probeInstances } from "../../cli/doctor/probe-instances.ts";
import { MASTER_KEY } from "../servers/gateway.ts";
import { programEnv } from "../servers/program-env.ts";
import { hasRedisServer } from "../servers/redis.ts";
import { createKey } from "./accounts.ts";
import { call } from "./calls.ts";
import { openTestbed, type Member } from "./testbed.ts";

const CALL = {
  stream: false,
  tokens: 4,
  delayMs: 0,
  chunkDelayMs: 0,
  leaveAfter: null,
} as const;
const PRICE = 10 * 0.000001 + 4 * 0.000002;

function environmentOf({ url }: Member): Readonly<Record<string, string>> {
  return { GATEWAY_URL: url, PROXY_MASTER_KEY: MASTER_KEY };
}

async function hearth(gateway: Member, args: readonly string[]) {
  const main = join(import.meta.dirname, "../../cli/main.ts");
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...programEnv(), NO_COLOR: "1", ...environmentOf(gateway) },
  });
  const [out, error] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
  ]);
  return { out, error };
}

test.runIf(hasRedisServer())(
  "spend of a gateway with a lost journal counts until its instance is forgotten",
  async () => {
    const testbed = await openTestbed(inject("postgresUrl"), {
      gateways: 2,
      redis: true,
    });
    try {
      const [first, lost] = testbed.gateways;
      if (first === undefined || lost === undefined) {
        throw new Error("too few gateways");
      }
      const key = await createKey(testbed, first, { max_budget: 10 * PRICE });
      const account = { key, fields: {} };
      const use = async (gateway: Member) =>
        (await call(gateway.url, account, CALL)).end;
      expect(await use(lost)).toBe("ok");
      await testbed.drained();
      lost.postgresRelay.cut();
      for (let calls = 0; calls < 4; calls++) {
        expect(await use(lost)).toBe("ok");
      }
      const listed = async () =>
        JSON.parse((await testbed.admin(first, "/instances")).text) as {
          instances: {
            instance: string;
            this_one: boolean;
            pending_budgets: number;
            pending_spend: number;
          }[];
        };
      const before = (await listed()).instances;
      expect(before.map((one) => one.this_one).sort()).toEqual([false, true]);
      const stopped = before.find((one) => !one.this_one);
      expect(stopped).toMatchObject({ pending_budgets: 1 });
      expect(stopped?.pending_spend).toBeCloseTo(4 * PRICE, 9);
      const name = stopped?.instance ?? "";
      const running = await hearth(first, ["instances", "forget", name]);
      expect(running.error).toContain(
        "is running; only an instance that was removed",
      );

      await lost.kill();
      rmSync(join(lost.directory, "journal"), { recursive: true });
      await expect
        .poll(() => probeInstances(environmentOf(first)), { timeout: 30_000 })
        .toMatchObject([
          {
            level: "hint",
            fix: `start it again; if its journal is lost: hearth instances forget ${name}`,
          },
        ]);
      for (let calls = 0; calls < 5; calls++) {
        expect(await use(first)).toBe("ok");
      }
      expect(await use(first)).not.toBe("ok");
      const forgotten = await hearth(first, ["instances", "forget", name]);
      expect(forgotten.out).toContain(`Instance ${name} forgotten`);
      expect(await probeInstances(environmentOf(first))).toEqual([]);
      for (let calls = 0; calls < 4; calls++) {
        expect(await use(first)).toBe("ok");
      }
      expect(await use(first)).toBe("budget_exceeded");
      const unknown = await hearth(first, ["instances", "forget", "nothing"]);
      expect(unknown.error).toBe('hearth: instance "nothing" not found.\n');
    } finally {
      await testbed.close();
    }
  },
);

test.runIf(hasRedisServer())(
  "a stopped gateway is listed until its journal is in the ledger, also by another process on its volume",
  async () => {
    const testbed = await openTestbed(inject("postgresUrl"), {
      gateways: 2,
      redis: true,
    });
    try {
      const [first, other] = testbed.gateways;
      if (first === undefined || other === undefined) {
        throw new Error("too few gateways");
      }
      const listed = async () => {
        const { text: answer } = await testbed.admin(first, "/instances");
        const { instances } = JSON.parse(answer) as {
          instances: { this_one: boolean; undrained_calls: number }[];
        };
        return instances.filter((one) => !one.this_one);
      };
      await other.stop();
      expect(await listed()).toEqual([]);

      await other.start();
      // Without a budget, Redis has nothing of its spend.
      const key = await createKey(testbed, other, {});
      const use = async () =>
        (await call(other.url, { key, fields: {} }, CALL)).end;
      expect(await use()).toBe("ok");
      await testbed.drained();
      other.postgresRelay.cut();
      expect([await use(), await use()]).toEqual(["ok", "ok"]);
      await expect
        .poll(listed)
        .toMatchObject([{ running: true, undrained_calls: 2 }]);
      await other.kill();
      await expect
        .poll(() => probeInstances(environmentOf(first)), { timeout: 30_000 })
        .toMatchObject([
          {
            text: expect.stringContaining(
              "is stopped with 2 calls only in its journal",
            ),
          },
        ]);

      other.postgresRelay.restore();
      await other.start();
      await other.stop();
      expect(await listed()).toEqual([]);
      expect(await testbed.sql("SELECT FROM spend_log")).toHaveLength(3);
    } finally {
      await testbed.close();
    }
  },
);
