import { describe, expect, test } from "vitest";
import { PARALLEL } from "../../infra/deploy/deploy-stack.ts";
import { callSteadily, expectNoFailedCall, MAX_WAIT_MS } from "./callers.ts";
import { containerIds, containers, healthyOn } from "./containers.ts";
import { deploy, quiet, say, timed } from "./day-two.ts";
import { deployedStack, EDGES } from "./running.ts";

const running = deployedStack();

/** A change that cannot work. */
describe("failed change", () => {
  test("5: a gateway that never becomes healthy fails the up and leaves the other one serving; the old image fixes it", async () => {
    const { testbed, key } = running();
    const images = JSON.parse(
      (await testbed.stack.getConfig("hearth:images")).value,
    ) as Record<string, string>;
    // An image that runs but does not respond.
    for (const host of ["a", "b"] as const) {
      await testbed.docker(
        host,
        "tag",
        "hearth-test/haproxy",
        "hearth-test/sick:latest",
      );
    }
    const before = await containerIds(testbed);
    const load = callSteadily({ baseUrls: EDGES, key, perSecond: 10 });
    await testbed.configure({
      images: JSON.stringify({ ...images, gateway: "hearth-test/sick:latest" }),
    });
    const { code, output } = await timed("failing up", () =>
      deploy(testbed, ["up"]),
    );
    expect(code, output).toBe(1);
    expect(output).toMatch(
      /^hearth: .*container failed to be in healthy state/m,
    );
    expect(output.match(/Last log lines of .*:/g)).toEqual([
      "Last log lines of hearth-gateway on host B:",
    ]);
    expect(output).toMatch(/on host B:\n[^]*Cannot open configuration file/);
    expect((await containerIds(testbed))["a hearth-gateway"]).toBe(
      before["a hearth-gateway"],
    );
    await testbed.configure({ images: JSON.stringify(images) });
    await timed("up with the old image", () =>
      testbed.stack.up({ parallel: PARALLEL, onOutput: quiet }),
    );
    expectNoFailedCall(await load.stop(), MAX_WAIT_MS.upgrade, say);
    for (const host of ["a", "b"] as const) {
      expect(await healthyOn(testbed, host)).toHaveLength(
        containers[host].length,
      );
    }
  });
});
