import { beforeAll, describe, expect, test } from "vitest";
import { PARALLEL } from "../../infra/deploy/deploy-stack.ts";
import { callSteadily, expectNoFailedCall, MAX_WAIT_MS } from "./callers.ts";
import { changedSince, containerIds } from "./containers.ts";
import { quiet, say, timed } from "./day-two.ts";
import { deployedStack, EDGES } from "./running.ts";
import { noAlerts } from "./supervisors.ts";

const running = deployedStack();
let since = 0;
beforeAll(() => {
  since = Date.now();
});

describe("new image", () => {
  test("3: a new gateway image under load through both edges: no call fails", async () => {
    const { testbed, key } = running();
    const before = await containerIds(testbed);
    const load = callSteadily({ baseUrls: EDGES, key, perSecond: 10 });
    // Another base is another image; another tag of the same one would not be.
    for (const host of ["a", "b"] as const) {
      await testbed.makeNextBase(host);
    }
    const images = JSON.parse(
      (await testbed.stack.getConfig("hearth:images")).value,
    ) as Record<string, string>;
    await testbed.configure({
      images: JSON.stringify({ ...images, nodeBase: "hearth-test/node:next" }),
    });
    await timed("up", () =>
      testbed.stack.up({ parallel: PARALLEL, onOutput: quiet }),
    );
    expectNoFailedCall(await load.stop(), MAX_WAIT_MS.upgrade, say);
    expect(await changedSince(testbed, before)).toEqual([
      "a hearth-gateway",
      "a hearth-supervisor",
      "b hearth-gateway",
      "b hearth-supervisor",
    ]);
  });

  test("no deployment raised an alert", () =>
    noAlerts(running().testbed, since));
});
