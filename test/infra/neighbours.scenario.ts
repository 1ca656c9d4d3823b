import { describe, expect, test } from "vitest";
import { changedSince, containerIds } from "./containers.ts";
import { ask, deploy, nothingDisagrees, timed } from "./day-two.ts";
import { chat, deployedStack } from "./running.ts";
import { addresses } from "./two-engines.ts";

const running = deployedStack();
const edge = `http://${addresses.a}:14000`;

/** Two stacks of the project on the same two hosts. */
describe("neighbours", () => {
  test("a second stack with the same names is rejected before anything is changed; with its own names and ports it is deployed and destroyed independently", async () => {
    const { testbed, key } = running();
    const before = await containerIds(testbed);
    const volumes = () => testbed.docker("a", "volume", "ls", "--quiet");
    const volumesBefore = await volumes();
    const trial = await testbed.neighbour("trial");

    const rejected = await deploy(trial, ["up"]);
    expect(rejected.code, rejected.output).toBe(1);
    expect(rejected.output).toContain("the stack hearth/test has ");
    expect(rejected.output).toContain(
      "and this is hearth/trial; nothing was changed: give this one its own names and ports",
    );
    await expect(trial.pulumi("up", "--yes")).rejects.toMatchObject({
      stdout: expect.stringContaining("the stack hearth/test has ") as string,
    });
    expect(await containerIds(testbed)).toEqual(before);
    expect(await volumes()).toBe(volumesBefore);

    await trial.configure({ prefix: "trial" });
    const ports = await deploy(trial, ["up"]);
    expect(ports.code, ports.output).toBe(1);
    expect(ports.output).toMatch(
      /needed by .*, is used by the container hearth-\w+; nothing was changed/,
    );

    await trial.configure({
      ports: JSON.stringify({
        edge: 14_000,
        edgeTls: 10_443,
        notes: 15_984,
        notesTls: 16_984,
        gatewayTls: 14_444,
        console: 14_443,
        postgres: 15_432,
        redis: 16_379,
      }),
    });
    const up = await timed("up of a second stack", () => deploy(trial, ["up"]));
    expect(up.code, up.output).toBe(0);
    await nothingDisagrees(trial);
    await nothingDisagrees(testbed);
    expect(
      Object.keys(await containerIds(testbed)).filter(
        (name) => !name.includes("trial"),
      ),
    ).toEqual(Object.keys(before));
    const { key: own } = await ask(edge, "/key/generate", trial.masterKey, {});
    await chat(edge, String(own), "to the second stack");
    await expect(chat(edge, key, "a key of the first one")).rejects.toThrow(
      /401/,
    );

    const down = await deploy(trial, ["destroy", "--yes"]);
    expect(down.code, down.output).toBe(0);
    expect(await changedSince(testbed, before)).toEqual([]);
    expect(Object.keys(await containerIds(testbed))).toEqual(
      Object.keys(before),
    );
    await chat(`http://${addresses.a}:4000`, key, "to the first stack");
  });
});
