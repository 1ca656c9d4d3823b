import { describe, expect, test } from "vitest";
import { deploy, gatewayRoleOf, settingOf, timed } from "./day-two.ts";
import { deployedStack, EDGES } from "./running.ts";
import { expectNowhere, keyAnswer, logsIn } from "./secrets.ts";

const running = deployedStack();

/** 6: a rotation that was killed before its end. */
describe("interrupted rotation", () => {
  const secrets: string[] = [];
  const heard: string[] = [];

  test.each([
    ["master", "masterKey"],
    ["postgres", "gatewayPassword"],
  ])(
    "6: an interrupted rotation of %s is continued by the same command, and any other command before it is rejected",
    async (kind, setting) => {
      const { testbed } = running();
      const killed = await deploy(
        testbed,
        ["rotate", kind],
        (output, signal) => {
          if (/Container gateway-a .*creating/.test(output)) {
            signal("SIGKILL");
          }
        },
      );
      expect(killed.code).toBeNull();
      const decided = await settingOf(testbed, setting);
      expect((await deploy(testbed, ["cancel"])).code).toBe(0);
      for (const words of [["up"], ["refresh"], ["destroy", "--yes"]]) {
        const rejected = await deploy(testbed, words);
        expect(rejected.code).toBe(1);
        expect(rejected.output).toContain(
          `npm run deploy -- --stack test rotate ${kind}`,
        );
      }
      await expect(testbed.pulumi("preview")).rejects.toMatchObject({
        stdout: expect.stringContaining("a rotation is unfinished"),
      });
      const { code, output } = await timed(`rotate ${kind} again`, () =>
        deploy(testbed, ["rotate", kind]),
      );
      expect(code, output).toBe(0);
      expect(output).toContain(`Continuing the unfinished rotation of ${kind}`);
      expect(await settingOf(testbed, setting)).toBe(decided);
      const masterKey = await settingOf(testbed, "masterKey");
      for (const edge of EDGES) {
        expect(await keyAnswer(edge, masterKey)).toBe(200);
      }
      const role = await gatewayRoleOf(testbed);
      expect(
        await logsIn(
          `gateway_${role}`,
          await settingOf(testbed, "gatewayPassword"),
        ),
      ).toBe(true);
      secrets.push(decided);
      heard.push(killed.output, output);
    },
  );

  test("6: no secret of an interrupted rotation in a log, the output, the state or docker inspect", async () => {
    expect(secrets).toHaveLength(2);
    await expectNowhere(running().testbed, secrets, {
      output: heard.join("\n"),
    });
  });
});
