import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { isNewHome, locateHome, type Home } from "../supervisor/home/home.ts";
import { defaultHomeRoot } from "../supervisor/home/home-root.js";
import { lockHome } from "../supervisor/home/lock.ts";
import {
  placeMovedPostgres,
  systemPlaceOf,
} from "../embedded/postgres-place.ts";
import { executeSync } from "../core/execute.ts";
import { Failure, codeOf } from "../core/failure.ts";
import {
  aliveIn,
  readRunFile,
} from "../supervisor/runtimes/process/run-file.ts";
import { print } from "./terminal.ts";
import { defineVerb, type Verb } from "./verb.ts";

const show = defineVerb({
  name: "home show",
  description: "Print where all data is.",
  example: "hearth home show",
  args: {},
  run: async () => {
    print(locateHome().root);
    return 0;
  },
});

const move = defineVerb({
  name: "home move",
  description: "Move the data out of the checkout, or to another place.",
  example: "hearth home move",
  args: {
    to: {
      type: "string",
      description: "Where to, if not to the user's data directory",
      valueHint: "path",
    },
  },
  run: async ({ to }) => {
    const from = locateHome();
    const target = locateHome({ HEARTH_HOME: to ?? defaultHomeRoot() });
    moveHome(from, target);
    for (const sentence of sentencesAfterMove(from, target)) {
      print(sentence);
    }
    return 0;
  },
});

export const home: Verb = {
  name: "home",
  description: "Where all data is, and how to move it.",
  example: "hearth home move",
  verbs: { show: async () => show, move: async () => move },
};

/** What was done, and what is left to do. */
export function sentencesAfterMove(
  from: Pick<Home, "root" | "checkout">,
  to: Pick<Home, "root">,
  env: Readonly<Record<string, string | undefined>> = process.env,
): readonly string[] {
  const isUsual = to.root === resolve(defaultHomeRoot(env));
  const named = env["HEARTH_HOME"] ?? "";
  return [
    `Moved ${from.root} to ${to.root}.`,
    ...(isUsual || (named !== "" && resolve(named) === to.root)
      ? []
      : [
          `Set HEARTH_HOME=${to.root} for each command, since this is not the default place.`,
        ]),
    ...(isUsual && named !== "" && resolve(named) !== to.root
      ? [
          `Unset HEARTH_HOME, which is still ${named}: this is the default place.`,
        ]
      : []),
    ...(from.root === join(from.checkout, ".hearth")
      ? [
          `Settings files in the checkout (config/*.local.yaml) stay there; they can be moved to ${join(to.root, "config")}.`,
        ]
      : []),
    "If Hearth starts at boot, run `hearth service install` once more: its unit names the place.",
  ];
}

/** Moves everything that Hearth keeps. Throws a Failure, with everything as it was, when it runs or the target is in use. */
function moveHome(from: Home, to: Home): void {
  if (from.root === to.root) {
    throw new Failure(`the data is in ${from.root} already.`);
  }
  if (isNewHome(from)) {
    throw new Failure(`there is no data in ${from.root} to move.`);
  }
  if (existsSync(to.root) && !isNewHome(to)) {
    throw new Failure(
      `${to.root} holds data of another Hearth: name another place with --to.`,
    );
  }
  const lock = lockHome(from.lock);
  const { services } = readRunFile(from.runFile);
  const runs = Object.values(services).some((entry) => aliveIn(entry));
  lock?.release();
  if (lock === undefined || runs) {
    throw new Failure(
      "Hearth is running: stop it with `hearth down`, then run the command again.",
    );
  }
  mkdirSync(dirname(to.root), { recursive: true });
  // What commands without a start made there.
  rmSync(to.root, { recursive: true, force: true });
  const systemData = systemPlaceOf(from);
  moveDirectory(from.root, to.root);
  // Deployments make their build contexts again, programs their compiled code.
  for (const name of ["images", "cache"]) {
    rmSync(join(to.root, name), { recursive: true, force: true });
  }
  placeMovedPostgres(to, systemData);
}

function moveDirectory(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (codeOf(error) !== "EXDEV") {
      throw error;
    }
    const next = `${to}.moving`;
    rmSync(next, { recursive: true, force: true });
    // Keeps owners: Postgres's files may belong to a user of its own.
    const { ok, reason } = executeSync("cp", ["-a", from, next]);
    if (!ok) {
      rmSync(next, { recursive: true, force: true });
      throw new Failure(
        `${from} could not be copied (${reason}): nothing was changed.`,
      );
    }
    renameSync(next, to);
    rmSync(from, { recursive: true });
  }
}
