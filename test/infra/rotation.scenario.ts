import { describe, expect, test } from "vitest";
import { gatewayRoleOf } from "./day-two.ts";
import { RotationsUnderLoad } from "./rotate-under-load.ts";
import { deployedStack } from "./running.ts";
import { logsIn } from "./secrets.ts";

const running = deployedStack();
const rotations = new RotationsUnderLoad(running);

/** 6: the secrets of the server that all calls need. The others: other-rotations.scenario.ts. */
describe("rotation", () => {
  test("6: Postgres' passwords under load: the other gateway role, and all old ones rejected", async () => {
    const { testbed } = running();
    const role = await gatewayRoleOf(testbed);
    const [gateway, supervisor, backup, superuser] = await rotations.rotate(
      "postgres",
      [
        "gatewayPassword",
        "supervisorPassword",
        "backupPassword",
        "postgresPassword",
      ],
    );
    const other = role === "a" ? "b" : "a";
    expect(await gatewayRoleOf(testbed)).toBe(other);
    for (const [user, pair] of [
      ["supervisor", supervisor],
      ["backup", backup],
      ["postgres", superuser],
    ] as const) {
      expect(await logsIn(user, pair?.old), `${user}, old`).toBe(false);
      expect(await logsIn(user, pair?.now), `${user}, new`).toBe(true);
    }
    expect(await logsIn(`gateway_${role}`, gateway?.old)).toBe(false);
    expect(await logsIn(`gateway_${other}`, gateway?.now)).toBe(true);
  });

  test("6: no secret, old or new, in a log, an event, the state, an argument or docker inspect", () =>
    rotations.expectNoSecrets());
});
