import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";

type Program = ChildProcessByStdio<null, Readable, Readable>;

let checkout: string;
let lock: string;
const started: Program[] = [];

/** A checkout with bin/ only, whose npm records its commands; `npm rebuild node` installs a link to this Node. */
beforeEach(() => {
  checkout = mkdtempSync(join(tmpdir(), "hearth-setup-"));
  lock = join(checkout, ".setup-lock");
  const bin = fileURLToPath(new URL("../bin", import.meta.url));
  cpSync(bin, join(checkout, "bin"), { recursive: true });
  writeFileSync(
    join(checkout, "package.json"),
    JSON.stringify({
      type: "module",
      allowScripts: { node: true, one: true, unwanted: false },
    }),
  );
  writeFileSync(join(checkout, "package-lock.json"), "{}");
  mkdirSync(join(checkout, "programs"));
  writeFileSync(
    join(checkout, "programs", "npm"),
    `#!/bin/sh
echo "$*" >>"${checkout}/npm-commands"
mkdir -p node_modules/node/bin
[ "$*" != "rebuild node" ] || ln -sf "${process.execPath}" node_modules/node/bin/node
`,
    { mode: 0o755 },
  );
});

afterEach(() => {
  for (const child of started.splice(0)) {
    child.kill("SIGKILL");
  }
  rmSync(checkout, { recursive: true, force: true });
});

function run(script: string): Program {
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    cwd: checkout,
    env: {
      PATH: `${join(checkout, "programs")}${delimiter}${process.env["PATH"]}`,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  started.push(child);
  return child;
}

async function setUp(): Promise<{ code: number | null; errors: string }> {
  const child = run(`(await import("./bin/setup.js")).setUp()`);
  const [errors] = await Promise.all([text(child.stderr), once(child, "exit")]);
  return { code: child.exitCode, errors };
}

function npmCommands(): readonly string[] {
  const file = join(checkout, "npm-commands");
  return existsSync(file)
    ? readFileSync(file, "utf8").trimEnd().split("\n")
    : [];
}

function installs(): number {
  return npmCommands().filter((command) => command.startsWith("ci ")).length;
}

/** A process that holds the lock until it is killed. */
async function hold(): Promise<Program> {
  const child = run(`
    const { withSetupLock } = await import("./bin/setup-lock.js");
    withSetupLock(${JSON.stringify(lock)}, () => {
      process.stdout.write("held");
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    }, { waitMs: 0 });`);
  await once(child.stdout, "data");
  return child;
}

const STALE: readonly (readonly [string, () => void])[] = [
  ["an empty file", () => writeFileSync(lock, "")],
  ["the file of an earlier version", () => writeFileSync(lock, "1")],
  ["a directory", () => mkdirSync(lock)],
  ["a link without a holder", () => symlinkSync("?", lock)],
  [
    "the id of a process that started later",
    () => symlinkSync(`${process.pid} of an earlier boot`, lock),
  ],
];

test.each(STALE)(
  "%s in place of the lock hangs no command",
  async (_, leave) => {
    leave();
    expect(await setUp()).toMatchObject({ code: 0 });
    expect(installs()).toBe(1);
    expect(lstatSync(lock, { throwIfNoEntry: false })).toBeUndefined();
  },
);

test("the lock of a killed process is taken over", async () => {
  const holder = await hold();
  holder.kill("SIGKILL");
  await once(holder, "exit");
  expect(lstatSync(lock).isSymbolicLink()).toBe(true);
  expect(await setUp()).toMatchObject({ code: 0 });
});

test("commands that start together over a stale lock install once", async () => {
  writeFileSync(lock, "");
  const all = await Promise.all([setUp(), setUp(), setUp()]);
  expect(all.map(({ code }) => code)).toEqual([0, 0, 0]);
  expect(installs()).toBe(1);
});

test("a command that waits for a live holder names it, and fails with one sentence after its timeout", async () => {
  const holder = await hold();
  const waiting = run(`
    const { withSetupLock } = await import("./bin/setup-lock.js");
    const say = (sentence) => process.stdout.write(sentence);
    try {
      withSetupLock(${JSON.stringify(lock)}, () => say("worked"), { say, waitMs: 1500 });
    } catch (error) {
      say("\\n" + error.message);
    }`);
  const output = await text(waiting.stdout);
  expect(output).toContain(
    `another command (pid ${holder.pid}) is installing packages; waiting`,
  );
  expect(output).toContain(
    "wait for it or end it, then run the command again.",
  );
  expect(output).not.toContain("worked");
});

/** A checkout after a manual `npm ci`, with the record written by npm. */
function installedByHand(packages: Readonly<Record<string, object>>): void {
  const all = {
    "": { name: "hearth" },
    "node_modules/one": { version: "1.0.0" },
    "node_modules/of-another-system": { version: "1.0.0", optional: true },
  };
  writeFileSync(
    join(checkout, "package-lock.json"),
    JSON.stringify({ packages: all }),
  );
  const bin = join(checkout, "node_modules/node/bin");
  mkdirSync(bin, { recursive: true });
  symlinkSync(process.execPath, join(bin, "node"));
  writeFileSync(
    join(checkout, "node_modules/.package-lock.json"),
    JSON.stringify({ packages }),
  );
}

test("only permitted packages run their install scripts, Node's last", async () => {
  expect(await setUp()).toMatchObject({ code: 0 });
  expect(npmCommands()).toEqual([
    "ci --ignore-scripts --no-audit --no-fund",
    "rebuild one",
    "rebuild node",
  ]);
});

test("packages installed by a manual npm ci are not installed again", async () => {
  installedByHand({ "node_modules/one": { version: "1.0.0" } });
  expect(await setUp()).toEqual({ code: 0, errors: "" });
  expect(installs()).toBe(0);
});

test.each([
  ["of an earlier lock file", { "node_modules/one": { version: "0.9.0" } }],
  ["that are not all there", {}],
])("packages %s are installed", async (_, packages) => {
  installedByHand(packages);
  expect(await setUp()).toMatchObject({ code: 0 });
  expect(installs()).toBe(1);
});
