import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { programEnv } from "../test/servers/program-env.ts";

const root = join(import.meta.dirname, "..");
const { scripts } = JSON.parse(
  readFileSync(join(root, "package.json"), "utf8"),
) as { readonly scripts: Readonly<Record<string, string>> };
const programs = Object.entries(scripts).flatMap(([name, command]) => {
  const [, file] =
    /^node bin\/run\.js (test\/(?:bench|faults|watching)\/\S+\.ts)$/.exec(
      command,
    ) ?? [];
  return /^(bench|test:)/.test(name) && file !== undefined
    ? [[name, file] as const]
    : [];
});

function run(file: string, ...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, file), ...args],
    { encoding: "utf8", env: programEnv() },
  );
  return { status, stdout, stderr };
}

test("all benchmarks and campaigns are covered", () => {
  expect(programs.map(([name]) => name)).toEqual([
    "test:faults",
    "test:watching",
    "bench",
    "bench:ledger",
    "bench:journal",
    "bench:tokens",
    "bench:sealing",
    "bench:supervisor",
    "bench:pages",
    "bench:tracing",
    "bench:profile",
    "bench:notes",
    "bench:soak",
    "bench:scale",
  ]);
});

test.each(programs)(
  "npm run %s lists its options with --help, and below the error for an unknown one",
  (name, file) => {
    const helped = run(file, "--help");
    expect([helped.status, helped.stderr]).toEqual([0, ""]);
    expect(helped.stdout).toMatch(new RegExp(`^Usage: npm run ${name}\\b`));
    expect(run(file, "--nonsense")).toEqual({
      status: 2,
      stdout: "",
      stderr: `hearth: Unknown option '--nonsense'.\n${helped.stdout}`,
    });
  },
  60_000,
);

test.each([
  ["bench", "--seconds", "soon", "is not a number above 0"],
  ["bench:soak", "--rate", "0", "is not a number above 0"],
  ["bench:soak", "--minutes", "x", "is not a number above 0"],
  ["bench:profile", "--load", "plian", "is not one of plain"],
  ["bench:profile", "--concurrency", "1.5", "is not a whole number from 1"],
  ["bench:ledger", "--rows", "x", "is not a whole number from 1"],
  ["bench:pages", "--keys", "", "is not a whole number from 1"],
  ["bench:supervisor", "--checks", "0", "is not a whole number from 1"],
  ["test:faults", "--seed", "1.5", "is not a whole number from 0"],
  ["test:faults", "--only", "kil", "is not one of kill-redis"],
  ["test:watching", "--every", "often", "is not a time such as 30s"],
  ["test:watching", "--only", "gateway", "is not one of postgres killed"],
] as const)(
  "npm run %s rejects %s %s",
  (name, option, value, sentence) => {
    const file = programs.find(([known]) => known === name)?.[1] ?? "";
    const { status, stderr } = run(file, `${option}=${value}`);
    expect(status).toBe(2);
    expect(stderr).toContain(`hearth: ${option}: ${value} ${sentence}`);
  },
  60_000,
);
