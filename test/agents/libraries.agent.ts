import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inProject } from "../../infra/project-files.ts";
import { commandsOf } from "../docs-commands.ts";
import { GREETING, said } from "./coding-agents.ts";
import {
  createPlace,
  PROGRAMS,
  runCommands,
  type Place,
  type ProgramRun,
} from "./program.ts";
import type { Script } from "./scripted-provider.ts";
import { startAgentTestbed, type AgentTestbed } from "./testbed.ts";

const PAGE = "docs/clients.md";
/** Anthropic's, and a local runner's. */
const ALIASES = ["claude-sonnet", "qwen-coder"];

let testbed: AgentTestbed;

beforeAll(async () => {
  testbed = await startAgentTestbed();
});
afterAll(() => testbed?.stop());

/** Calls the only tool, and repeats its result. */
const callsTool: Script = ({ toolNames: [name], toolResults }) => {
  if (toolResults.length > 0 || name === undefined) {
    return said(`It is ${toolResults.join(" and ")}.`);
  }
  const given = name === "weather" ? '{"city":"Bern"}' : "{}";
  const call = { id: "call_1", name, argumentPieces: [given] };
  return { thinking: null, text: [], calls: [call] };
};

/** Code of the page as a file in the working directory, run by its interpreter. */
function runCode(
  place: Place,
  mark: string,
  language: "js" | "python",
  alias: string,
  key: string,
): Promise<ProgramRun> {
  const [code = ""] = commandsOf(PAGE, mark, language);
  const [file, command] =
    language === "js"
      ? ["example.mjs", "node example.mjs"]
      : ["example.py", "python3 example.py"];
  return runCommands(testbed, place, `cd ../work && ${command}`, {
    key,
    files: { [`../work/${file}`]: code.replaceAll("claude-sonnet", alias) },
    ...(language === "js" ? { modules: modulesOf(mark) } : {}),
  });
}

function modulesOf(mark: string): string {
  return mark === "ai-sdk"
    ? inProject("node_modules")
    : join(PROGRAMS, "npm/node_modules");
}

describe.each([
  ["ai-sdk", "js"],
  ["langchain-js", "js"],
  ["langchain-python", "python"],
  ["openai-agents", "python"],
] as const)("%s", (mark, language) => {
  test.each(ALIASES)(
    "calls a tool through %s, and the ledger equals the provider's record",
    async (alias) => {
      const place = createPlace();
      try {
        testbed.provider.follow(callsTool);
        const key = await testbed.createKey();
        const run = await runCode(place, mark, language, alias, key);
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

  test("an exhausted budget is an error with one sentence", async () => {
    const place = createPlace();
    try {
      testbed.provider.follow(callsTool);
      const key = await testbed.createKey({ max_budget: 0.000_01 });
      const run = await runCode(place, mark, language, "qwen-coder", key);
      expect(run.output).toContain("Budget has been exceeded!");
      expect(run.exitCode).toBe(1);
      expect(testbed.provider.calls).toHaveLength(1);
    } finally {
      place.remove();
    }
  });
});

test.each(ALIASES)("llm calls a tool through %s", async (alias) => {
  const place = createPlace();
  try {
    testbed.provider.follow(callsTool);
    const key = await testbed.createKey();
    const [models = ""] = commandsOf(PAGE, "llm", "yaml");
    const [commands = ""] = commandsOf(PAGE, "llm");
    const run = await runCommands(testbed, place, commands, {
      key,
      files: {
        ".config/io.datasette.llm/extra-openai-models.yaml": models.replace(
          "claude-sonnet",
          alias,
        ),
      },
    });
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
    const [commands = ""] = commandsOf(PAGE, "aider");
    const run = await runCommands(
      testbed,
      place,
      commands.replace("claude-sonnet", alias),
      {
        key,
        files: {
          // Its table of models, as an earlier start has downloaded it.
          ".aider/caches/model_prices_and_context_window.json": `{"other": {}}`,
        },
      },
    );
    expect(run.exitCode).toBe(0);
    expect(readFileSync(join(place.work, "hello.txt"), "utf8")).toBe(GREETING);
    expect(testbed.provider.calls).toHaveLength(1);
    await testbed.expectExactLedger(key);
    expect(testbed.outside.attempts).toEqual([]);
  } finally {
    place.remove();
  }
});
