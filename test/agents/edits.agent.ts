import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  CODING_AGENTS,
  GREETING,
  runAgent,
  writesFile,
} from "./coding-agents.ts";
import { createPlace } from "./program.ts";
import {
  CLOUD_ALIASES,
  LOCAL_ALIASES,
  startAgentTestbed,
  type AgentTestbed,
} from "./testbed.ts";

let testbed: AgentTestbed;

beforeAll(async () => {
  testbed = await startAgentTestbed();
});
afterAll(() => testbed?.stop());

describe.each(CODING_AGENTS)("%s", (agent) => {
  test.each([...CLOUD_ALIASES, ...LOCAL_ALIASES])(
    "edits a file through %s, and the ledger equals the provider's record",
    async (alias) => {
      const place = createPlace();
      try {
        testbed.provider.follow(writesFile(place));
        const key = await testbed.createKey();
        const run = await runAgent(testbed, place, agent, { key, alias });
        expect(run.output).toContain("The greeting is written.");
        expect(run.exitCode).toBe(0);
        expect(readFileSync(join(place.work, "hello.txt"), "utf8")).toBe(
          GREETING,
        );
        expect(testbed.provider.calls.length).toBeGreaterThan(1);
        await testbed.expectExactLedger(key);
        expect(testbed.outside.attempts).toEqual([]);
      } finally {
        place.remove();
      }
    },
  );
});
