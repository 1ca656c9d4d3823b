import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runAgent, textOf, writesFiles } from "./coding-agents.ts";
import { createPlace } from "./program.ts";
import { startAgentTestbed, type AgentTestbed } from "./testbed.ts";

const TURNS = 30;
const KILLED_IN = 15;

let testbed: AgentTestbed;

beforeAll(async () => {
  testbed = await startAgentTestbed(2);
});
afterAll(() => testbed?.stop());

test.each([
  ["claude-code", "claude-sonnet"],
  ["codex", "gpt-mini"],
  ["gemini-cli", "claude-sonnet"],
  ["opencode", "gpt-oss"],
] as const)(
  "%s: a session of 30 turns stays at one deployment of %s, survives kill -9 of the gateway, and is booked exactly",
  async (agent, alias) => {
    const place = createPlace();
    try {
      const answer = writesFiles(place, TURNS);
      let kills = 0;
      testbed.provider.follow((request, body) => {
        const scripted = answer(request, body);
        if (kills > 0 || !body.includes(`"call_${KILLED_IN}"`)) {
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
      const run = await runAgent(testbed, place, agent, { key, alias });
      expect(run.output).toContain(`All ${TURNS} files are written.`);
      expect(run.exitCode).toBe(0);
      for (let file = 1; file <= TURNS; file++) {
        const path = join(place.work, `file-${file}.txt`);
        expect(readFileSync(path, "utf8")).toBe(textOf(file));
      }
      expect(kills).toBe(1);

      const turns = testbed.provider.calls.filter(({ hasTools }) => hasTools);
      // One of them again, after the kill.
      expect(turns.length).toBeGreaterThan(TURNS + 1);
      expect(new Set(turns.map(({ path }) => path)).size).toBe(1);
      await testbed.expectExactLedger(key);
      const finished = testbed.provider.calls.filter((call) => call.finished);
      const cached = finished.reduce(
        (sum, { usage }) => sum + (usage?.cachedTokens ?? 0),
        0,
      );
      const tokens = await testbed.tokensOf(key);
      expect(tokens.cached).toBe(cached);
      expect(tokens.cached / tokens.input).toBeGreaterThan(0.85);
      expect(testbed.outside.attempts).toEqual([]);
    } finally {
      place.remove();
    }
  },
);
