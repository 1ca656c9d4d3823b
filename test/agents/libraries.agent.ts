import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GREETING, said } from "./coding-agents.ts";
import {
  callsTool,
  LIBRARY_NAMES,
  runAider,
  runLibrary,
  runLlm,
} from "./libraries.ts";
import { createPlace } from "./program.ts";
import {
  RESPONSES_ALIAS,
  startAgentTestbed,
  type AgentTestbed,
} from "./testbed.ts";

/** Anthropic's, OpenAI's by its Responses API, and a local runner's. */
const ALIASES = ["claude-sonnet", RESPONSES_ALIAS, "qwen-coder"];

let testbed: AgentTestbed;

beforeAll(async () => {
  testbed = await startAgentTestbed();
});
afterAll(() => testbed?.stop());

describe.each(LIBRARY_NAMES)("%s", (library) => {
  test.each(ALIASES)(
    "calls a tool through %s, and the ledger equals the provider's record",
    async (alias) => {
      const place = createPlace();
      try {
        testbed.provider.follow(callsTool);
        const key = await testbed.createKey();
        const run = await runLibrary(testbed, place, library, { key, alias });
        expect(run.output).toContain("It is sunny in Bern.");
        expect(run.exitCode).toBe(0);
        expect(testbed.provider.calls).toHaveLength(2);
        await testbed.expectExactLedger(key);
        expect(testbed.outside.attempts).toEqual([]);
      } finally {
        place.remove();
      }
    },
  );
});

test.each(ALIASES)("llm calls a tool through %s", async (alias) => {
  const place = createPlace();
  try {
    testbed.provider.follow(callsTool);
    const key = await testbed.createKey();
    const run = await runLlm(testbed, place, { key, alias });
    expect(run.output).toMatch(/It is .*utc_time/s);
    expect(run.exitCode).toBe(0);
    expect(testbed.provider.calls).toHaveLength(2);
    await testbed.expectExactLedger(key);
    expect(testbed.outside.attempts).toEqual([]);
  } finally {
    place.remove();
  }
});

test.each(ALIASES)("aider edits a file through %s", async (alias) => {
  const place = createPlace();
  try {
    testbed.provider.follow(() =>
      said(`hello.txt\n\`\`\`\n${GREETING}\`\`\`\n`),
    );
    const key = await testbed.createKey();
    const run = await runAider(testbed, place, { key, alias });
    expect(run.exitCode).toBe(0);
    expect(readFileSync(join(place.work, "hello.txt"), "utf8")).toBe(GREETING);
    expect(testbed.provider.calls).toHaveLength(1);
    await testbed.expectExactLedger(key);
    expect(testbed.outside.attempts).toEqual([]);
  } finally {
    place.remove();
  }
});
