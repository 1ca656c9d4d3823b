import { describe, expect, test } from "vitest";
import { findLeftoverPlugins } from "../../infra/deploy/processes.ts";
import { nameOf, readState } from "../../infra/deploy/state.ts";
import { allHealthy, containers } from "./containers.ts";
import { deploy, nothingDisagrees, say, timed } from "./day-two.ts";
import { createKey, emptyStack } from "./running.ts";
import type { Testbed } from "./testbed.ts";

const running = emptyStack();

/** Resources in the order of their creation; the run is killed during the creation of each. */
const OF_EACH_KIND = [
  "Network network-a",
  "Volume postgres-data",
  "RemoteImage gateway-b-image",
  "Container postgres",
  "Role postgres-supervisor",
  "Container gateway-b",
] as const;
const ALL = [
  ...OF_EACH_KIND.slice(0, 3),
  "Container socket-proxy-b",
  "Container redis",
  "Container notes",
  ...OF_EACH_KIND.slice(3),
  "Container gateway-a",
  "Container supervisor-a",
  "Container supervisor-b",
  "Container edge-a",
  "Container edge-b",
] as const;
/** Further containers take minutes longer each: for a campaign. */
const points =
  process.env["HEARTH_INTERRUPTED_AT"] === "all" ? ALL : OF_EACH_KIND;

/** 9: one deployment from nothing, killed at each point and restarted after `cancel`. */
describe("interruption", () => {
  test("9: up killed while creating each kind of resource: cancel and up complete it, and nothing is duplicated", async () => {
    const testbed = running();
    let killed = 0;
    for (const [index, point] of points.entries()) {
      // Resources created by an earlier run are not created again.
      if (await isMade(testbed, point)) {
        continue;
      }
      // Every third run simulates an impatient operator: Ctrl-C twice.
      const impatient = index % 3 === 2;
      let sent = false;
      const run = await timed(`killed at ${point}`, () =>
        deploy(testbed, ["up"], (output, signal) => {
          if (sent || !output.includes(`${point} creating`)) {
            return;
          }
          sent = true;
          if (!impatient) {
            return signal("SIGKILL");
          }
          signal("SIGINT");
          setTimeout(() => signal("SIGINT"), 300);
        }),
      );
      expect(sent, run.output).toBe(true);
      killed += 1;
      const { code, output } = await deploy(testbed, ["cancel"]);
      expect(code, output).toBe(0);
      expect(await findLeftoverPlugins()).toEqual([]);
      const { pending_operations: pending } = await readState(testbed.stack);
      expect(pending.filter(({ type }) => type === "creating")).toEqual([]);
    }
    say(`${killed} runs were interrupted`);
    expect(killed).toBeGreaterThanOrEqual((points.length * 2) / 3);
    // Plain pulumi continues without mentioning it.
    const output = await timed("pulumi up", () =>
      testbed.pulumi("up", "--yes", "--skip-preview", "--parallel", "4"),
    );
    expect(output).not.toContain("pending operations");
    await allHealthy(testbed);
    await nothingDoubled(testbed);
    await nothingDisagrees(testbed);
    await testbed.stack.preview({ refresh: true, expectNoChanges: true });
    await createKey(testbed);
  });
});

async function isMade(testbed: Testbed, point: string): Promise<boolean> {
  const { resources } = await readState(testbed.stack);
  const [, name] = point.split(" ");
  return resources.some(
    ({ urn, type }) => nameOf(urn) === name && !type.startsWith("hearth:"),
  );
}

async function nothingDoubled(testbed: Testbed): Promise<void> {
  for (const host of ["a", "b"] as const) {
    const lines = async (...args: string[]) =>
      (await testbed.docker(host, ...args)).trim().split("\n").toSorted();
    expect(await lines("ps", "-a", "--format", "{{.Names}}")).toEqual(
      containers[host].map((name) => `hearth-${name}`),
    );
    expect(
      await lines(
        "network",
        "ls",
        "--filter",
        "name=^hearth",
        "--format",
        "{{.Name}}",
      ),
    ).toEqual(["hearth", "hearth-socket"]);
  }
  const state = await readState(testbed.stack);
  expect(state.pending_operations).toEqual([]);
  const urns = state.resources.map(({ urn }) => urn);
  expect(new Set(urns).size).toBe(urns.length);
}
