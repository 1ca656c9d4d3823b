import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readScenario } from "./recordings.ts";
import { replay, type Vault } from "./replay.ts";
import type { RunningServer, ServerUnderTest } from "./server-under-test.ts";
import type { Tolerance } from "./tolerated.ts";

/** Scenarios that depend on each other share a database; each list is one such group. */
const STORIES: readonly (readonly string[])[] = [
  [
    "a-first-device",
    "b1-second-device-replication",
    "b2-third-device-fast-fetch",
    "b3-fourth-device-standard-fetch",
    "c1-edit-and-sync",
    "c2-live",
    "d1-conflict-resolved-by-command",
    "d2-conflict-resolved-by-newer",
    "e-delete-and-rename",
    "g4-not-a-member",
    "g5-server-away-and-back",
    "h1-lock-unlock",
    "h2-maintenance-as-member",
  ],
  ["c3-two-live-devices"],
  ["f-plain-vault"],
  ["g1-wrong-password"],
  ["g2-missing-db-member"],
  ["g3-missing-db-admin"],
  ["g6-lockout"],
  ["h3-rebuild-as-admin", "h4-rebuild-as-member"],
  ["i1-seed-missing"],
  ["i2-seed-put-back"],
  ["k-many-notes"],
];

/** Replays the recorded traffic of a real LiveSync client and compares the responses. */
export function replayScenarios(
  server: ServerUnderTest,
  tolerance: Tolerance,
): void {
  describe("the traffic of a real LiveSync client", () => {
    let running: RunningServer;

    beforeAll(async () => {
      running = await server.start();
    });

    afterAll(async () => {
      await running.stop();
    });

    for (const story of STORIES) {
      let vault: Vault | undefined;

      test.each(story.map(readScenario))(
        "$name: $title",
        async (scenario) => {
          vault ??= await replay.prepare(running, scenario, tolerance);
          expect(await vault.run(scenario)).toEqual([]);
        },
        60_000,
      );
    }
  });
}
