// Checks format, lint rules, types and imports in parallel (npm run check). With --changed (npm run test:changed): only files
// that differ from the main branch, and the tests without servers that import any of them.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { $ } from "zx";
import { FOLDERS } from "./folders.ts";

const root = join(import.meta.dirname, "..");
const shell = $({
  cwd: root,
  nothrow: true,
  stdio: ["ignore", "pipe", "pipe"],
});

const { values } = parseArgs({
  options: { changed: { type: "boolean", default: false } },
});
const base = values.changed ? await forkPoint() : undefined;
const changed = base === undefined ? undefined : await changedSince(base);
if (changed?.length === 0) {
  process.stdout.write(`No changes since ${base?.slice(0, 7)}.\n`);
} else {
  const passed = await Promise.all(plan(changed).map(run));
  process.exitCode = passed.every(Boolean) ? 0 : 1;
}

/** The commit at which this branch left the main branch; the last commit if there is none, as in a shallow clone. */
async function forkPoint(): Promise<string> {
  for (const main of ["origin/main", "main"]) {
    const { ok, stdout } = await shell`git merge-base HEAD ${main}`;
    if (ok) {
      return stdout.trim();
    }
  }
  return (await shell`git rev-parse HEAD`).stdout.trim();
}

/** Files that differ from a commit, committed or not, including new and deleted ones. */
async function changedSince(commit: string): Promise<readonly string[]> {
  const lists = await Promise.all([
    shell`git diff --name-only -z ${commit}`,
    shell`git ls-files --others --exclude-standard -z`,
  ]);
  return lists.flatMap(({ stdout }) => stdout.split("\0").filter(Boolean));
}

/** The commands to run. Caches compare contents, since a checkout changes the time of every file. */
function plan(
  changed: readonly string[] | undefined,
): readonly (readonly string[])[] {
  const cache = ["--cache", "--cache-strategy", "content"];
  const files = changed?.filter((name) => existsSync(join(root, name))) ?? [
    ".",
  ];
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
    // Imports between rooms (.dependency-cruiser.mjs) can only be checked as a whole.
    ["dependency-cruiser/bin/dependency-cruiser.mjs", ...FOLDERS],
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

/** Runs a command of a package and prints its output when it has ended. */
async function run([
  program = "",
  ...args
]: readonly string[]): Promise<boolean> {
  const name = /^[^/]*/.exec(program)?.[0] ?? program;
  const { ok, stdout, stderr } =
    await shell`${process.execPath} node_modules/${program} ${args}`;
  process.stdout.write(
    `== ${name} ${ok ? "passed" : "FAILED"}\n${stdout}${stderr}`,
  );
  return ok;
}
