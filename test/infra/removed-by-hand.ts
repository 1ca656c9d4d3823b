import { expect, test } from "vitest";
import { changedSince, containerIds } from "./containers.ts";
import { deploy, settingOf, timed, type Running } from "./day-two.ts";
import { allHealthy } from "./loss.ts";

/** 4: the docker plugin cannot stop what is gone, and so neither replace nor delete it. */
export function removedByHandScenarios(running: () => Running): void {
  test("4: a container that was removed by hand is made anew by an up that changes it", async () => {
    const { stand } = running();
    const before = await containerIds(stand);
    await stand.docker("a", "rm", "--force", "hearth-redis");
    const memory = JSON.parse(await settingOf(stand, "memory")) as {
      readonly redis?: number;
    };
    await stand.configure({
      memory: JSON.stringify({ ...memory, redis: (memory.redis ?? 128) + 32 }),
    });
    const { code, said } = await timed("up", () => deploy(stand, ["up"]));
    expect(code, said).toBe(0);
    expect(said).toContain("Removed by hand: hearth-redis on host A.");
    await allHealthy(stand);
    expect(await changedSince(stand, before)).toEqual(["a hearth-redis"]);
  });
}
