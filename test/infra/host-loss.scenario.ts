import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { callSteadily, expectNoFailedCall, MAX_WAIT_MS } from "./callers.ts";
import { allHealthy } from "./containers.ts";
import { deploy, say, settingOf, timed } from "./day-two.ts";
import { deployedStack, EDGES } from "./running.ts";
import { runScript } from "./two-engines.ts";

const running = deployedStack();

/** How long host B is off; the assertions do not depend on it. */
const awaySeconds = Number(process.env["HEARTH_HOST_AWAY_SECONDS"] ?? "20");

/** 8: a whole host that is switched off. */
describe("host loss", () => {
  test("8: host B switched off: A serves, up on A works, B recovers automatically, and the next preview is empty", async () => {
    const { testbed, key } = running();
    const load = callSteadily({
      baseUrls: [EDGES[0]],
      key,
      perSecond: 10,
    });
    const since = performance.now();
    await runScript("scripts/hosts.sh", "off", "b");
    try {
      const memory = JSON.parse(await settingOf(testbed, "memory")) as {
        readonly redis?: number;
      };
      await testbed.configure({
        memory: JSON.stringify({
          ...memory,
          redis: (memory.redis ?? 128) + 32,
        }),
      });
      for (const verb of ["up", "refresh"]) {
        const { code, output } = await timed(`${verb} --without b`, () =>
          deploy(testbed, [verb, "--without", "b"]),
        );
        expect(code, output).toBe(0);
      }
      await sleep(
        Math.max(0, awaySeconds * 1000 - (performance.now() - since)),
      );
    } finally {
      await runScript("scripts/hosts.sh", "up");
    }
    await timed("B back", () => allHealthy(testbed));
    expectNoFailedCall(await load.stop(), MAX_WAIT_MS.upgrade, say);
    await testbed.stack.preview({ refresh: true, expectNoChanges: true });
  });
});
