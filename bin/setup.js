// Plain JavaScript for any Node: it runs before anything is installed.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { withSetupLock } from "./setup-lock.js";

const root = fileURLToPath(new URL("..", import.meta.url));
/** Directory of the checkout this command belongs to, without a trailing slash. */
export const checkout = root.replace(/[/\\]$/, "");
const stamp = join(root, "node_modules", ".hearth-setup");
const packagedNode = packagedNodeOf(root);
/** Longer than npm waits for a registry that does not respond. */
const MAX_WAIT_MS = 15 * 60_000;

/** Prints one sentence to stderr and exits with code 1. */
export function fail(sentence) {
  process.stderr.write(`hearth: ${sentence}\n`);
  process.exit(1);
}

function lockHash() {
  return createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
}

function isSetUp() {
  return existsSync(stamp) && readFileSync(stamp, "utf8") === lockHash();
}

/**
 * Whether a manual `npm ci` installed exactly this lock file, scripts included, according to the record that npm writes at its
 * end.
 */
function isInstalled() {
  const noted = join(root, "node_modules", ".package-lock.json");
  if (!existsSync(packagedNode) || !existsSync(noted)) {
    return false;
  }
  const installed = packagesIn(noted);
  return Object.entries(packagesIn(join(root, "package-lock.json"))).every(
    ([path, wanted]) => {
      const found = installed[path];
      return found === undefined
        ? path === "" || wanted.optional === true
        : found.version === wanted.version &&
            found.integrity === wanted.integrity;
    },
  );
}

function packagesIn(lockFile) {
  return JSON.parse(readFileSync(lockFile, "utf8")).packages ?? {};
}

/** Runs `npm ci` unless it already succeeded for exactly this lock file. */
export function setUp() {
  if (Number(process.versions.node.split(".")[0]) < 20) {
    fail(
      `needs Node 20 or newer, this is ${process.version}: install a newer Node and run the command again.`,
    );
  }
  if (isSetUp()) {
    return;
  }
  try {
    withSetupLock(join(root, ".setup-lock"), install, {
      say: (sentence) => process.stderr.write(`hearth: ${sentence}\n`),
      waitMs: MAX_WAIT_MS,
    });
  } catch (error) {
    fail(error.message);
  }
}

function install() {
  // Another process may have done it in the meantime.
  if (isSetUp()) {
    return;
  }
  if (!isInstalled()) {
    runNpmCi();
  }
  const version = spawnSync(packagedNode, ["--version"], { encoding: "utf8" });
  if (version.status !== 0) {
    fail(
      `the packaged Node 24 does not run on this machine (${process.platform} ${process.arch}): install Node 24 and start it with that.`,
    );
  }
  writeFileSync(stamp, lockHash());
}

/**
 * Only the packages in `allowScripts` of package.json run their install scripts. npm 11 enforces that itself; an older npm would also
 * run that of @pulumi/kubernetes, which downloads the engine and a plugin that only some stacks use.
 */
function runNpmCi() {
  process.stderr.write("hearth: installing packages (npm ci) …\n");
  runNpm(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
  const [others, node] = packagesWithScripts();
  runNpm(["rebuild", ...others]);
  // Last: its presence tells `isInstalled` that all scripts have run.
  runNpm(["rebuild", ...node]);
}

function packagesWithScripts() {
  const { allowScripts } = JSON.parse(
    readFileSync(join(root, "package.json"), "utf8"),
  );
  const names = Object.keys(allowScripts).filter((name) => allowScripts[name]);
  const isNode = (name) => name === "node";
  return [names.filter((name) => !isNode(name)), names.filter(isNode)];
}

function runNpm(args) {
  const done = spawnSync("npm", args, {
    cwd: root,
    stdio: ["ignore", 2, 2],
    shell: process.platform === "win32",
  });
  if (done.error) {
    fail(
      `could not start npm (${done.error.message}): install npm, then run the command again.`,
    );
  }
  if (done.status !== 0) {
    fail(
      `npm ${args[0]} failed (output above): check the network or the disk, then run the command again.`,
    );
  }
}

/** Path of the packaged Node in a checkout or release. */
export function packagedNodeOf(base) {
  return join(base, "node_modules", "node", "bin", "node");
}

/**
 * Runs a program under the packaged Node 24 of `base` and exits with its exit code or signal.
 * SIGINT and SIGTERM are forwarded; receivers ignore repeated signals within one second.
 */
export function runWithPackagedNode(args, base = root, more = {}) {
  const child = spawn(packagedNodeOf(base), args, {
    stdio: "inherit",
    env: {
      ...process.env,
      ...more,
      // Compiled once: every program starts faster, also after the project was moved.
      NODE_COMPILE_CACHE_PORTABLE: "1",
      NODE_COMPILE_CACHE:
        process.env.NODE_COMPILE_CACHE ??
        join(base, "node_modules", ".cache", "hearth"),
      PATH: `${join(base, "node_modules", ".bin")}${delimiter}${process.env.PATH ?? ""}`,
    },
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => child.kill(signal));
  }
  child.on("error", (error) =>
    fail(
      `could not start Node 24 (${error.message}): delete node_modules and try again.`,
    ),
  );
  child.on("exit", (code, signal) =>
    process.exit(code ?? 128 + (constants.signals[signal] ?? 0)),
  );
}

/** An absolute path inside the project. */
export function inProject(...parts) {
  return join(root, ...parts);
}
