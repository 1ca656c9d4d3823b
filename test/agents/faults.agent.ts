import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  CODING_AGENTS,
  runAgent,
  writesFile,
  type AgentOptions,
  type CodingAgent,
} from "./coding-agents.ts";
import { createPlace, type ProgramRun } from "./program.ts";
import type { Script } from "./scripted-provider.ts";
import { startAgentTestbed, type AgentTestbed } from "./testbed.ts";

let testbed: AgentTestbed;

beforeAll(async () => {
  testbed = await startAgentTestbed();
});
afterAll(() => testbed?.stop());

/** Runs an agent without retries of its own, by default in a turn that writes a file. */
async function runFaulty(
  agent: CodingAgent,
  key: string,
  script?: Script,
  { alias = "claude-sonnet", ...how }: Partial<AgentOptions> = {},
): Promise<ProgramRun> {
  const place = createPlace();
  try {
    testbed.provider.follow(script ?? writesFile(place));
    return await runAgent(testbed, place, agent, {
      key,
      alias,
      withoutRetries: true,
      ...how,
    });
  } finally {
    place.remove();
  }
}

describe.each(CODING_AGENTS)("%s", (agent) => {
  test("says that the budget is exhausted, and the provider gets no further call", async () => {
    const key = await testbed.createKey({ max_budget: 0.000_01 });
    const run = await runFaulty(agent, key);
    expect(run.output).toContain("Budget has been exceeded!");
    const after = testbed.provider.calls.length;
    const again = await runFaulty(agent, key);
    expect(again.output).toContain("Budget has been exceeded!");
    expect(after).toBeGreaterThan(0);
    expect(testbed.provider.calls).toEqual([]);
  });

  test("says that the provider is down, in the provider's words", async () => {
    const key = await testbed.createKey();
    const run = await runFaulty(agent, key, () => ({
      status: 503,
      message: "The model is down for maintenance.",
    }));
    expect(run.output).toContain(
      "claude-sonnet: The model is down for maintenance.",
    );
    await testbed.expectExactLedger(key);
  });
});

/** Codex shows no more of a 429 than its status. */
const CODEX_429 = "exceeded retry limit, last status: 429 Too Many Requests";
/** Each has an alias to itself, which cools down. OpenCode waits instead, and cannot be told not to. */
const NOT_WAITING = [
  {
    agent: "claude-code",
    alias: "qwen-coder",
    limited: "Rate limit reached for this key",
    busy: "qwen-coder: Too many requests.",
    cooling: "No deployment of qwen-coder is available",
  },
  {
    agent: "codex",
    alias: "gpt-oss",
    limited: CODEX_429,
    busy: CODEX_429,
    cooling: CODEX_429,
  },
] as const;

describe.each(NOT_WAITING)("$agent, without waiting,", (expected) => {
  const { agent, alias } = expected;
  const overHttp = true;

  test("says that its rate limit is reached", async () => {
    const key = await testbed.createKey({ rpm_limit: 1 });
    const run = await runFaulty(agent, key, undefined, { overHttp });
    expect(run.output).toContain(expected.limited);
    expect(run.exitCode).toBe(1);
    expect(testbed.provider.calls).toHaveLength(1);
    await testbed.expectExactLedger(key);
  });

  test("says that an alias is cooling down after the provider's 429, and the provider is not asked again", async () => {
    const key = await testbed.createKey();
    const busy: Script = () => ({
      status: 429,
      message: "Too many requests.",
      retryAfter: 60,
    });
    const first = await runFaulty(agent, key, busy, { alias, overHttp });
    expect(first.output).toContain(expected.busy);
    const second = await runFaulty(agent, key, busy, { alias, overHttp });
    expect(second.output).toContain(expected.cooling);
    expect(second.exitCode).toBe(1);
    expect(testbed.provider.calls).toEqual([]);
  });
});
