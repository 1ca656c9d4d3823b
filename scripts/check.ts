// Format, rules and types, side by side (npm run check). With --changed, as npm run test:changed: of the files that differ from
// the main branch alone, and with them the tests without servers that import any of these.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { ROOMS } from "./rooms.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

const { values } = parseArgs({
  options: { changed: { type: "boolean", default: false } },
});
const base = values.changed ? forkPoint() : undefined;
const changed = base === undefined ? undefined : changedSince(base);
if (changed?.length === 0) {
  process.stdout.write(`Nothing is changed since ${base?.slice(0, 7)}.\n`);
} else {
  const passed = await Promise.all(plan(changed).map(run));
  process.exitCode = passed.every(Boolean) ? 0 : 1;
}

/** Where this branch left the main branch; the last commit where there is none, as in a shallow clone. */
function forkPoint(): string {
  for (const main of ["origin/main", "main"]) {
    try {
      return git("merge-base", "HEAD", main).trim();
    } catch {
      // There is no such branch, or nothing in common with it.
    }
  }
  return git("rev-parse", "HEAD").trim();
}

/** What differs from a commit, committed or not, new and deleted files too. */
function changedSince(commit: string): readonly string[] {
  return [
    git("diff", "--name-only", "-z", commit),
    git("ls-files", "--others", "--exclude-standard", "-z"),
  ].flatMap((names) => names.split("\0").filter(Boolean));
}

function git(...args: readonly string[]): string {
  return execFileSync("git", args, {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
}

/** The commands to run. By content, as a checkout gives every file another time. */
function plan(
  changed: readonly string[] | undefined,
): readonly (readonly string[])[] {
  const cache = ["--cache", "--cache-strategy", "content"];
  const files = changed?.filter((name) => existsSync(root + name)) ?? ["."];
  const prettier = ["--check", "--ignore-unknown", ...cache];
  const code = changed === undefined ? files : files.filter(isCode);
  return [
    [
      "typescript/bin/tsc",
      "--incremental",
      "--tsBuildInfoFile",
      "node_modules/.cache/tsc.tsbuildinfo",
    ],
    ...(files.length === 0
      ? []
      : [["prettier/bin/prettier.cjs", ...prettier, ...files]]),
    [
      "eslint/bin/eslint.js",
      "--no-warn-ignored",
      "--pass-on-no-patterns",
      ...cache,
      "--cache-location",
      "node_modules/.cache/eslint/",
      ...code,
    ],
    // Which room imports which (.dependency-cruiser.mjs); an import is right or wrong in the whole alone.
    ["dependency-cruiser/bin/dependency-cruiser.mjs", ...ROOMS],
    ...(base === undefined
      ? []
      : [
          [
            "vitest/vitest.mjs",
            "run",
            "--changed",
            base,
            "--project",
            "unit",
            "--project",
            "mocked",
          ],
        ]),
  ];
}

function isCode(name: string): boolean {
  return /\.[cm]?[jt]s$/.test(name);
}

/** Runs a command of a package; its output is printed in one piece at its end. */
async function run([
  program = "",
  ...args
]: readonly string[]): Promise<boolean> {
  const name = /^[^/]*/.exec(program)?.[0] ?? program;
  const child = spawn(process.execPath, [`node_modules/${program}`, ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, error, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close") as Promise<[number | null]>,
  ]);
  process.stdout.write(
    `== ${name} ${code === 0 ? "passed" : "FAILED"}\n${out}${error}`,
  );
  return code === 0;
}
