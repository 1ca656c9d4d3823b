import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ENCRYPTED_REASONING } from "../clients/formats/openai-responses.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  CODING_AGENTS,
  GREETING,
  runAgent,
  said,
  writesFile,
} from "./coding-agents.ts";
import { createPlace } from "./program.ts";
import type { Scripted } from "./scripted-provider.ts";
import {
  CLOUD_ALIASES,
  CODEX_ALIAS,
  LOCAL_ALIASES,
  RESPONSES_ALIAS,
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

test.each(["gpt-mini", RESPONSES_ALIAS, "gpt-oss"])(
  "claude-code loads a tool that it had deferred, and calls it, through %s",
  async (alias) => {
    const place = createPlace();
    const call = (name: string, args: object): Scripted => ({
      thinking: null,
      text: [],
      calls: [
        { id: `call_${name}`, name, argumentPieces: [JSON.stringify(args)] },
      ],
    });
    const offered: (readonly string[])[] = [];
    try {
      testbed.provider.follow(({ toolNames, toolResults }) => {
        const result = toolResults.at(-1) ?? "";
        offered.push(toolNames);
        if (result === "") {
          return call("ToolSearch", { query: "select:CronList" });
        }
        return result.includes("is loaded")
          ? call("CronList", {})
          : said(`The list says: ${result}`);
      });
      const key = await testbed.createKey();
      const run = await runAgent(testbed, place, "claude-code", { key, alias });
      expect(run.output).toContain("The list says: No scheduled jobs.");
      expect(run.exitCode).toBe(0);
      expect(offered.map((names) => names.includes("CronList"))).toEqual([
        false,
        true,
        true,
      ]);
      expect(offered.every((names) => names.includes("ToolSearch"))).toBe(true);
      await testbed.expectExactLedger(key);
    } finally {
      place.remove();
    }
  },
);

test("claude-code sends encrypted reasoning back with the result of a tool", async () => {
  const place = createPlace();
  const answer = writesFile(place);
  const sentBack: boolean[] = [];
  try {
    testbed.provider.follow((request, body) => {
      sentBack.push(body.includes(`"${ENCRYPTED_REASONING}"`));
      const scripted = answer(request);
      return "text" in scripted
        ? { ...scripted, thinking: "A greeting is wanted." }
        : scripted;
    });
    const key = await testbed.createKey();
    const alias = RESPONSES_ALIAS;
    const run = await runAgent(testbed, place, "claude-code", { key, alias });
    expect(run.output).toContain("The greeting is written.");
    expect(sentBack[0]).toBe(false);
    expect(sentBack.at(-1)).toBe(true);
    await testbed.expectExactLedger(key);
  } finally {
    place.remove();
  }
});

test("codex searches for a tool and patches a file through a local runner, under a name that it knows", async () => {
  const place = createPlace();
  const call = (name: string, args: object): Scripted => ({
    thinking: null,
    text: [],
    calls: [
      { id: `call_${name}`, name, argumentPieces: [JSON.stringify(args)] },
    ],
  });
  const offered: (readonly string[])[] = [];
  try {
    testbed.provider.follow(({ toolNames, toolResults: [result] }) => {
      offered.push(toolNames);
      if (result === undefined) {
        return call("tool_search", { query: "send input to an agent" });
      }
      const patch = `*** Begin Patch\n*** Add File: hello.txt\n+${GREETING}*** End Patch\n`;
      return result.includes("can be called")
        ? call("apply_patch", { input: patch })
        : said("The greeting is written.");
    });
    const key = await testbed.createKey();
    const alias = CODEX_ALIAS;
    const run = await runAgent(testbed, place, "codex", { key, alias });
    expect(run.output).toContain("The greeting is written.");
    expect(run.exitCode).toBe(0);
    expect(readFileSync(join(place.work, "hello.txt"), "utf8")).toBe(GREETING);
    const found = "multi_agent_v1__send_input";
    expect(offered.map((names) => names.includes(found))).toEqual([
      false,
      true,
      true,
    ]);
    await testbed.expectExactLedger(key);
  } finally {
    place.remove();
  }
});

test("codex gives work to a sub-agent, whose tools are in a namespace, and waits for it", async () => {
  const place = createPlace();
  const call = (name: string, args: object): Scripted => ({
    thinking: null,
    text: [],
    calls: [
      {
        id: `call_${name}`,
        name: `multi_agent_v1__${name}`,
        argumentPieces: [JSON.stringify(args)],
      },
    ],
  });
  try {
    testbed.provider.follow(({ lastText, toolResults: [result] }) => {
      if (lastText === "Say the word.") {
        return said("The word is hearth.");
      }
      if (lastText.startsWith("<subagent_notification>")) {
        return said(`It said: ${lastText.replaceAll("\n", " ")}`);
      }
      if (result === undefined) {
        return call("spawn_agent", { message: "Say the word." });
      }
      const { agent_id: id } = JSON.parse(result) as { agent_id: string };
      return call("wait_agent", { targets: [id] });
    });
    const key = await testbed.createKey();
    const run = await runAgent(testbed, place, "codex", {
      key,
      alias: "gpt-oss",
    });
    expect(run.output).toMatch(/It said: .*The word is hearth\./);
    expect(run.exitCode).toBe(0);
    await testbed.expectExactLedger(key);
  } finally {
    place.remove();
  }
});
