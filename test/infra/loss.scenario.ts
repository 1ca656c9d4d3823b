import { describe, expect, test } from "vitest";
import { allHealthy, changedSince, containerIds } from "./containers.ts";
import {
  ask,
  deploy,
  nothingDisagrees,
  say,
  settingOf,
  timed,
  upWithRefresh,
} from "./day-two.ts";
import { deployedStack, EDGES } from "./running.ts";
import type { Testbed } from "./testbed.ts";

const running = deployedStack();

/** 4: containers that die or are removed; 7: a stack that is destroyed. */
describe("loss", () => {
  test("4: Docker brings back a gateway whose process is killed; doctor reports a removed container, and up --refresh creates it", async () => {
    const { testbed } = running();
    const look = async (field: string) =>
      Number(
        await testbed.docker(
          "b",
          "inspect",
          "--format",
          field,
          "hearth-gateway",
        ),
      );
    const pid = await look("{{.State.Pid}}");
    // The pid of a stopped container is 0, which would signal this process's own group.
    expect(pid).toBeGreaterThan(1);
    const before = await containerIds(testbed);
    const restarts = () => look("{{.RestartCount}}");
    const known = await restarts();
    process.kill(pid, "SIGKILL");
    await timed("back", async () => {
      await expect.poll(restarts, { timeout: 60_000 }).toBeGreaterThan(known);
      await allHealthy(testbed);
    });
    expect(await containerIds(testbed)).toEqual(before);

    await testbed.docker("b", "rm", "--force", "hearth-edge");
    const result = await deploy(testbed, ["doctor"]);
    expect(result.code).toBe(1);
    expect(result.output).toContain(
      "host B: hearth-edge is in the state but not on the host: npm run deploy -- --stack test up --refresh",
    );
    await upWithRefresh(testbed);
    expect(await changedSince(testbed, before)).toEqual(["b hearth-edge"]);
    await nothingDisagrees(testbed);
  });

  test.each([
    ["removed", ["rm", "--force"]],
    ["stopped", ["stop"]],
  ])(
    "4: up --refresh restores a Postgres that was %s manually, with its data",
    async (_how, words) => {
      const { testbed, key } = running();
      const before = await containerIds(testbed);
      await testbed.docker("a", ...words, "hearth-postgres");
      const result = await deploy(testbed, ["doctor"]);
      expect(result.output).toContain("the roles of Postgres cannot be read");
      await upWithRefresh(testbed);
      expect(await changedSince(testbed, before)).toEqual([
        "a hearth-postgres",
      ]);
      await expectSpent(testbed, key);
      await testbed.stack.preview({ refresh: true, expectNoChanges: true });
    },
  );

  test("4: of manually removed containers, plain pulumi up creates the one that it changes, and deploy up the other one", async () => {
    const { testbed } = running();
    const before = await containerIds(testbed);
    await testbed.docker("a", "rm", "--force", "hearth-redis");
    await testbed.docker("b", "rm", "--force", "hearth-edge");
    const memory = JSON.parse(await settingOf(testbed, "memory")) as {
      readonly redis?: number;
    };
    await testbed.configure({
      memory: JSON.stringify({ ...memory, redis: (memory.redis ?? 128) + 32 }),
    });
    const plain = await timed("pulumi up", () =>
      testbed.pulumi("up", "--yes", "--skip-preview", "--parallel", "4"),
    );
    expect(plain).toMatch(/1 replaced\n/);
    expect(await containerIds(testbed)).toMatchObject({
      "a hearth-redis": expect.any(String),
    });
    expect((await containerIds(testbed))["b hearth-edge"]).toBeUndefined();
    const { code, output } = await timed("up", () => deploy(testbed, ["up"]));
    expect(code, output).toBe(0);
    expect(output).toContain("Removed manually: hearth-edge on host B.");
    await allHealthy(testbed);
    expect(await changedSince(testbed, before)).toEqual([
      "a hearth-redis",
      "b hearth-edge",
    ]);
  });

  test("7: plain destroy changes nothing; with --skip-preview it removes containers before it fails at a volume, and up uses the data again", async () => {
    const { testbed, key } = running();
    const before = await containerIds(testbed);
    const volumes = () =>
      testbed.docker("a", "volume", "ls", "-q", "-f", "name=^hearth-");
    const kept = await volumes();
    await expect(testbed.pulumi("destroy", "--yes")).rejects.toThrow();
    expect(await containerIds(testbed)).toEqual(before);
    await expect(
      testbed.pulumi("destroy", "--yes", "--skip-preview", "--parallel", "4"),
    ).rejects.toThrow();
    const left = Object.keys(await containerIds(testbed));
    say(`left by destroy --skip-preview: ${left.join(", ")}`);
    expect(left.length).toBeLessThan(Object.keys(before).length);
    expect(await volumes()).toBe(kept);
    const { code, output } = await timed("up", () => deploy(testbed, ["up"]));
    expect(code, output).toBe(0);
    await allHealthy(testbed);
    await expectSpent(testbed, key);
  });
});

/** The key's one call is still in the ledger. */
async function expectSpent(testbed: Testbed, key: string): Promise<void> {
  const { info } = await ask(
    EDGES[1],
    `/key/info?key=${key}`,
    await settingOf(testbed, "masterKey"),
  );
  expect((info as { readonly spend: number }).spend).toBeGreaterThan(0);
}
