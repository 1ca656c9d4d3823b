import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { inProject } from "../../infra/project-files.ts";
import { callSteadily } from "./callers.ts";
import {
  changedSince,
  containerIds,
  containers,
  healthyOn,
} from "./containers.ts";
import { ask, deploy, say, settingOf, timed, type Running } from "./day-two.ts";
import type { Stand } from "./stand.ts";
import { addresses } from "./two-engines.ts";

/** Host B stays away for so long; the assertions are the same however long it is. */
const awaySeconds = Number(process.env["HEARTH_HOST_AWAY_SECONDS"] ?? "20");

/** 4: containers that die or are removed; 8: a whole host that is switched off. */
export function lossScenarios(running: () => Running): void {
  test("4: Docker brings back a gateway whose process is killed; doctor names a container that is gone, and up --refresh makes it", async () => {
    const { stand } = running();
    const look = async (field: string) =>
      Number(
        await stand.docker("b", "inspect", "--format", field, "hearth-gateway"),
      );
    const pid = await look("{{.State.Pid}}");
    // 0, of a container that does not run, would be this process's own group.
    expect(pid).toBeGreaterThan(1);
    const before = await containerIds(stand);
    const restarts = () => look("{{.RestartCount}}");
    const known = await restarts();
    process.kill(pid, "SIGKILL");
    await timed("back", async () => {
      await expect.poll(restarts, { timeout: 60_000 }).toBeGreaterThan(known);
      await allHealthy(stand);
    });
    expect(await containerIds(stand)).toEqual(before);

    await stand.docker("b", "rm", "--force", "hearth-edge");
    const told = await deploy(stand, ["doctor"]);
    expect(told.code).toBe(1);
    expect(told.said).toContain(
      "host B: hearth-edge is in the state and not on the host: npm run deploy -- up --refresh",
    );
    await upWithRefresh(stand);
    expect(await changedSince(stand, before)).toEqual(["b hearth-edge"]);
    await nothingDisagrees(stand);
  });

  test.each([
    ["removed", ["rm", "--force"]],
    ["stopped", ["stop"]],
  ])(
    "4: a Postgres that was %s by hand comes back with its data by up --refresh",
    async (_how, words) => {
      const { stand, key } = running();
      const before = await containerIds(stand);
      await stand.docker("a", ...words, "hearth-postgres");
      const told = await deploy(stand, ["doctor"]);
      expect(told.said).toContain("Postgres cannot be asked for its roles");
      await upWithRefresh(stand);
      expect(await changedSince(stand, before)).toEqual(["a hearth-postgres"]);
      const { info } = await ask(
        `http://${addresses.b}:4000`,
        `/key/info?key=${key}`,
        await settingOf(stand, "masterKey"),
      );
      expect((info as { readonly spend: number }).spend).toBeGreaterThan(0);
      await stand.stack.preview({ refresh: true, expectNoChanges: true });
    },
  );

  test("8: host B switched off: A serves, up on A works, B comes back by itself, and the next preview is empty", async () => {
    const { stand, key } = running();
    const load = callSteadily({
      baseUrls: [`http://${addresses.a}:4000`],
      key,
      perSecond: 10,
    });
    const hosts = (word: string) =>
      promisify(execFile)(inProject("scripts/hosts.sh"), [word]);
    const since = performance.now();
    await hosts("off-b");
    try {
      const memory = JSON.parse(await settingOf(stand, "memory")) as {
        readonly redis?: number;
      };
      await stand.configure({
        memory: JSON.stringify({
          ...memory,
          redis: (memory.redis ?? 128) + 32,
        }),
      });
      for (const verb of ["up", "refresh"]) {
        const { code, said } = await timed(`${verb} --without b`, () =>
          deploy(stand, [verb, "--without", "b"]),
        );
        expect(code, said).toBe(0);
      }
      await sleep(
        Math.max(0, awaySeconds * 1000 - (performance.now() - since)),
      );
    } finally {
      await hosts("up");
    }
    await timed("B back", () => allHealthy(stand));
    const { calls, streams, failures } = await load.stop();
    say(
      `${calls} calls through A, ${streams} of them streams, ${failures.length} failed, in ${((performance.now() - since) / 1000).toFixed(0)} s`,
    );
    expect(failures).toEqual([]);
    await stand.stack.preview({ refresh: true, expectNoChanges: true });
  });
}

/** Waits until every container of both hosts is healthy. */
export async function allHealthy(stand: Stand): Promise<void> {
  for (const host of ["a", "b"] as const)
    await expect
      .poll(() => healthyOn(stand, host).catch(() => []), {
        timeout: 180_000,
        interval: 1_000,
      })
      .toEqual(containers[host].map((name) => `hearth-${name}`));
}

export async function upWithRefresh(stand: Stand): Promise<void> {
  const { code, said } = await timed("up --refresh", () =>
    deploy(stand, ["up", "--refresh"]),
  );
  expect(code, said).toBe(0);
  await allHealthy(stand);
}

export async function nothingDisagrees(stand: Stand): Promise<void> {
  const { said } = await deploy(stand, ["doctor"]);
  expect(said).toContain("State, hosts and configuration agree.");
}
