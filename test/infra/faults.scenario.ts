import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { PARALLEL } from "../../infra/deploy/deploy-stack.ts";
import {
  changedSince,
  containerIds,
  healthyOn,
  containers,
} from "./containers.ts";
import { say } from "./day-two.ts";
import { deployedStack } from "./running.ts";
import type { Testbed } from "./testbed.ts";
import { historyOf, serviceState, type HistoryLine } from "./supervisors.ts";

type Host = "a" | "b";

const running = deployedStack();
const testbed = (): Testbed => running().testbed;

/** Faults of containers on the running stack: detection, healing and alerts of the supervisors. */
describe("faults", () => {
  test("4: killed, hung and out of memory: each recovers within the restart budget, and an alert gives the reason", async () => {
    // After two minutes a missing container is no longer attributed to a deployment.
    await testbed().docker("b", "rm", "-f", "hearth-edge");

    const killed = Date.now();
    await testbed().docker("a", "kill", "hearth-gateway");
    say(`killed: ${await healed("a", "gateway", killed)}`);

    const hung = Date.now();
    signal(await mainProcess(testbed(), "a", "hearth-gateway"), "SIGSTOP");
    say(`hung: ${await healed("a", "gateway", hung)}`);
    const restarts = (await historyOf("a")).filter(
      ({ at, kind, name, to }) =>
        at >= killed && kind === "act" && name === "gateway" && to === "heal",
    );
    expect(restarts).toHaveLength(2);

    const starved = Date.now();
    await outgrowMemory(testbed(), "b", "hearth-gateway");
    const line = await lineAfter(
      "b",
      starved,
      ({ name, to }) => name === "gateway" && to === "restart",
    );
    expect(line.reason).toBe("out of memory; restarted by Docker");
    await expect
      .poll(() => serviceState("b", "gateway"), { timeout: 60_000 })
      .toBe("running");
    say(`out of memory: noticed after ${seconds(line.at - starved)}`);
  });

  test("4: a removed container is reported, left alone, and restored by up --refresh", async () => {
    const before = await containerIds(testbed());
    expect(before["b hearth-edge"]).toBeUndefined();
    const wasNotified = (event: string) => () =>
      testbed().alerts.some(
        (alarm) =>
          alarm.host === "host B" &&
          alarm.subject === "edge" &&
          alarm.event === event,
      );
    await expect.poll(wasNotified("raised"), { timeout: 240_000 }).toBe(true);
    expect(await serviceState("b", "edge")).toBe("absent");
    await testbed().stack.up({
      refresh: true,
      parallel: PARALLEL,
      onOutput: () => {},
    });
    expect(await changedSince(testbed(), before)).toEqual(["b hearth-edge"]);
    for (const host of ["a", "b"] as const) {
      expect(await healthyOn(testbed(), host)).toHaveLength(
        containers[host].length,
      );
    }
    await expect.poll(wasNotified("resolved"), { timeout: 120_000 }).toBe(true);
    say(
      `alerts: ${testbed()
        .alerts.map(
          ({ host, event, subject }) => `${subject} ${event} (${host})`,
        )
        .join(", ")}`,
    );
  });
});

/** Waits until the host's supervisor has healed the service and its check is up again; returns a summary. */
async function healed(
  host: Host,
  service: string,
  since: number,
): Promise<string> {
  const down = await lineAfter(
    host,
    since,
    ({ kind, name, to }) =>
      kind === "check" && name === service && to === "down",
  );
  const heal = await lineAfter(
    host,
    since,
    ({ kind, name, to }) => kind === "act" && name === service && to === "heal",
  );
  const up = await lineAfter(
    host,
    heal.at,
    ({ kind, name, to }) => kind === "check" && name === service && to === "up",
  );
  // The next fault must happen to a container that Docker also considers healthy.
  await expect
    .poll(() => serviceState(host, service), { timeout: 60_000 })
    .toBe("running");
  return `${service} down after ${seconds(down.at - since)}, restarted after ${seconds(heal.at - since)}, up after ${seconds(up.at - since)}`;
}

async function lineAfter(
  host: Host,
  since: number,
  wanted: (line: HistoryLine) => boolean,
): Promise<HistoryLine> {
  let found: HistoryLine | undefined;
  await expect
    .poll(
      async () => {
        found = (await historyOf(host)).find(
          (line) => line.at >= since && wanted(line),
        );
        return found !== undefined;
      },
      { timeout: 120_000, interval: 500 },
    )
    .toBe(true);
  if (found === undefined) {
    throw new Error("unreachable");
  }
  return found;
}

/** Processes of both engines are visible on this machine. */
async function mainProcess(
  testbed: Testbed,
  host: Host,
  container: string,
): Promise<number> {
  return Number(
    await testbed.docker(host, "inspect", "-f", "{{.State.Pid}}", container),
  );
}

function signal(pid: number, name: NodeJS.Signals): void {
  if (!(pid > 1)) {
    throw new Error(`no process ${pid}`);
  }
  process.kill(pid, name);
}

/** Fills the container's memory from a second process in it; oom_score_adj makes the kernel kill the main one. */
async function outgrowMemory(
  testbed: Testbed,
  host: Host,
  container: string,
): Promise<void> {
  const pid = await mainProcess(testbed, host, container);
  writeFileSync(`/proc/${pid}/oom_score_adj`, "1000");
  const hog = "const all = []; for (;;) all.push(Buffer.alloc(1e7, 1));";
  // It ends with the container.
  await testbed
    .docker(host, "exec", container, "node", "-e", hog)
    .catch(() => undefined);
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(0)} s`;
}
