#!/usr/bin/env node
// Runs the CLI under the packaged Node 24, whichever Node runs this file. `up` and `upgrade` install this checkout as a new
// release; every other command uses the running release and installs nothing.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { findHomeRoot } from "../supervisor/home/home-root.js";
import {
  checkout,
  fail,
  packagedNodeOf,
  runWithPackagedNode,
  setUp,
} from "./setup.js";

const words = process.argv.slice(2);
const home = findHomeRoot(checkout);

function installs() {
  const [verb, ...rest] = words;
  const only = ["--help", "-h", "--back", "--forget-old"];
  if (rest.some((word) => only.includes(word))) {
    return false;
  }
  return (
    verb === "up" ||
    verb === "upgrade" ||
    // These also start Hearth, but before the first start there is no release. For root, the service's user installs it.
    (((verb === "service" &&
      rest[0] === "install" &&
      process.getuid?.() !== 0) ||
      (verb === "offsite" && rest[0] === "restore")) &&
      !currentRelease())
  );
}

/** Installs the release of this checkout next to the running one. */
function install() {
  setUp();
  const created = spawnSync(
    packagedNodeOf(checkout),
    [join(checkout, "scripts", "release.ts")],
    {
      stdio: ["ignore", "pipe", "inherit"],
      encoding: "utf8",
      env: { ...process.env, HEARTH_HOME: home },
    },
  );
  if (created.status === null) {
    fail(
      `could not create the release of this checkout (${created.error?.message ?? `ended by ${created.signal}`}): check the memory and the limits of this machine (\`ulimit -a\`), then run the command again.`,
    );
  }
  if (created.status !== 0) {
    process.exit(1);
  }
  return created.stdout.trim();
}

/** The running release, or the last one; undefined before the first start. */
function currentRelease() {
  const link = join(home, "releases", "current");
  return existsSync(packagedNodeOf(link)) ? realpathSync(link) : undefined;
}

/** Output of a checkout without installed packages. */
function introduce() {
  const { version } = JSON.parse(
    readFileSync(join(checkout, "package.json"), "utf8"),
  );
  if (words.includes("--version")) {
    console.log(`hearth ${version}`);
  } else if (words.includes("--help") || words.includes("-h")) {
    console.log(
      "Hearth: your own AI gateway and notes sync.\n\nIts packages are not installed yet: `npm start` installs and starts it; then `npx hearth --help` lists the commands.",
    );
  } else {
    console.error(
      "hearth: the packages of this checkout are not installed: `npm start` installs them and starts Hearth.",
    );
    process.exit(1);
  }
}

// A checkout of root needs its packages before another user can create a release of it.
if (
  words[0] === "service" &&
  words[1] === "install" &&
  process.getuid?.() === 0 &&
  statSync(checkout).uid === 0
) {
  setUp();
}

// Deployments belong to the checkout, which contains the Pulumi settings.
const ofCheckout = words[0] === "doctor" && words.includes("--hosts");
const base = installs()
  ? install()
  : ((ofCheckout ? undefined : currentRelease()) ?? checkout);
if (existsSync(packagedNodeOf(base))) {
  runWithPackagedNode(
    [
      // This program becomes the supervisor in the foreground: see supervisor/node-options.ts.
      "--max-semi-space-size=1",
      "--optimize-for-size",
      "--v8-pool-size=1",
      join(base, "supervisor", "cli", "main.ts"),
      ...words,
    ],
    base,
    { HEARTH_HOME: home, HEARTH_CHECKOUT: checkout },
  );
} else {
  introduce();
}
