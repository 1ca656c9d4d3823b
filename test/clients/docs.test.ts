import { execFile } from "node:child_process";
import {
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MOCK } from "./formats/mock-model.ts";
import { pythonOrLeaveOut } from "./python.ts";
import { startClientTestbed, type ClientTestbed } from "./testbed.ts";

const inProject = (path: string) =>
  fileURLToPath(new URL(`../../${path}`, import.meta.url));
const [RUN = "", NOT_RUN = ""] = readFileSync(
  inProject("docs/clients.md"),
  "utf8",
).split("## Not run by the tests");
const GATEWAY = "http://127.0.0.1:4000";

let testbed: ClientTestbed;
let directory: string;
let key: string;

beforeAll(async () => {
  testbed = await startClientTestbed();
  key = await testbed.createKey();
  directory = mkdtempSync(join(tmpdir(), "hearth-test-docs-"));
  symlinkSync(inProject("node_modules"), join(directory, "node_modules"));
});
afterAll(async () => {
  rmSync(directory, { recursive: true, force: true });
  await testbed.stop();
});

/** The code of one section of the page, with the address of the running gateway. */
function codeOf(section: string, language: string): readonly string[] {
  const text = RUN.split(/^## /m).find((part) => part.startsWith(section));
  const blocks = [...(text ?? "").matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  return blocks.flatMap(([, named, code]) =>
    named === language && code !== undefined
      ? [code.replaceAll(GATEWAY, testbed.url)]
      : [],
  );
}

/** Runs code as a reader would; returns its output and throws with its error output when it fails. */
async function runCode(
  program: string,
  file: string,
  code: string,
): Promise<string> {
  const path = join(directory, file);
  writeFileSync(path, code);
  const { stdout } = await promisify(execFile)(program, [path], {
    env: { PATH: process.env["PATH"] ?? "", HEARTH_KEY: key },
  });
  return stdout;
}

test("curl", async () => {
  const [whole = "", stream = ""] = codeOf("curl", "sh");
  expect(await runCode("sh", "whole.sh", whole)).toContain(MOCK.text);
  expect(await runCode("sh", "stream.sh", stream)).toMatch(
    /mitenand.*data: \[DONE\]\n\n$/s,
  );
});

test("Gemini", async () => {
  const [code = ""] = codeOf("Gemini", "sh");
  expect(await runCode("sh", "gemini.sh", code)).toContain(MOCK.text);
});

test.each([
  ["openai (JavaScript)", `${MOCK.text}\n${MOCK.text}2 vectors\n`],
  ["Anthropic", `${MOCK.text}\n${MOCK.outputTokens} tokens\n`],
  ["Vercel AI SDK", `${MOCK.text}\n${MOCK.text}`],
])("%s", async (section, printed) => {
  const [code = ""] = codeOf(section, "js");
  expect(await runCode(process.execPath, "example.mjs", code)).toBe(printed);
});

test("openai (Python)", async ({ skip }) => {
  const python = await pythonOrLeaveOut();
  if (python === null) {
    return skip();
  }
  const [code = ""] = codeOf("openai (Python)", "python");
  expect(await runCode(python, "example.py", code)).toBe(
    `${MOCK.text}\n${MOCK.text}\n2 vectors\ninvalid_request_error\n`,
  );
}, 180_000);

test("the page uses the aliases of the shipped configuration", () => {
  const page = RUN + NOT_RUN;
  const used = [
    ...page.matchAll(
      /(?:model"?[:=] ?|hearth(?:\.chat)?\()"([\w-]+)"|_MODEL=(.+)/g,
    ),
  ].map(([, quoted, exported]) => quoted ?? exported);
  const shipped = readFileSync(inProject("config/gateway.yaml"), "utf8");
  const unknown = new Set(
    used.filter((name) => !shipped.includes(`model_name: ${name}\n`)),
  );
  expect(used.length).toBeGreaterThan(10);
  expect([...unknown]).toEqual(["no-such-model"]);
});

test("every code block on the page is run or listed as not run", () => {
  // Marked blocks are run by test/agents.
  const here = RUN.replaceAll(/^<!-- [\w-]+ -->\n\n```\w+\n[^]*?^```$/gm, "");
  const sections = here.split(/^## /m).slice(1);
  const withCode = sections.filter((section) => section.includes("```"));
  expect(withCode.map((section) => section.split("\n")[0])).toEqual([
    "curl",
    "openai (JavaScript)",
    "openai (Python)",
    "Anthropic",
    "Gemini",
    "Vercel AI SDK",
  ]);
  for (const program of [
    "Open WebUI",
    "Continue",
    "Zed",
    "Cursor",
    "n8n",
    "Home Assistant",
  ]) {
    expect(NOT_RUN).toContain(`**${program}**`);
  }
});
