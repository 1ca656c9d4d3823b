import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  CODING_AGENTS,
  GREETING,
  runAgent,
  writesFile,
} from "./coding-agents.ts";
import { createPlace } from "./program.ts";
import { startAgentTestbed, type AgentTestbed } from "./testbed.ts";

let testbed: AgentTestbed;

beforeAll(async () => {
  testbed = await startAgentTestbed();
});
afterAll(() => testbed?.stop());

test.each(CODING_AGENTS)(
  "%s continues after kill -9 of the gateway in the middle of a turn, and every call is booked once",
  async (agent) => {
    const place = createPlace();
    let kills = 0;
    try {
      const answer = writesFile(place);
      testbed.provider.follow((request) => {
        const scripted = answer(request);
        if (request.toolResults.length === 0 || kills > 0) {
          return scripted;
        }
        kills++;
        return {
          ...scripted,
          async afterFirstEvent() {
            await testbed.gateway.kill();
            await testbed.gateway.start();
          },
        };
      });
      const key = await testbed.createKey();
      const run = await runAgent(testbed, place, agent, {
        key,
        alias: "claude-sonnet",
      });
      expect(run.output).toContain("The greeting is written.");
      expect(run.exitCode).toBe(0);
      expect(readFileSync(join(place.work, "hello.txt"), "utf8")).toBe(
        GREETING,
      );
      expect(kills).toBe(1);
      await testbed.expectExactLedger(key);
    } finally {
      place.remove();
    }
  },
);
