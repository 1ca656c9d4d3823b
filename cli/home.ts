import { existsSync, globSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { isNewHome, locateHome, type Home } from "../supervisor/home/home.ts";
import {
  defaultHomeRoot,
  namedHomeRoot,
} from "../supervisor/home/home-root.js";
import {
  placeMovedPostgres,
  systemPlaceOf,
} from "../embedded/postgres-place.ts";
import { syncDirectory, syncTree } from "../core/durable-file.ts";
import { executeSync } from "../core/execute.ts";
import { Failure, codeOf } from "../core/failure.ts";
import { needStopped } from "./stack-client.ts";
import { printAnswer } from "./terminal.ts";
import { defineVerb, jsonArg, type Verb } from "./verb.ts";

const show = defineVerb({
  name: "home show",
  description: "Print the data directory.",
  example: "hearth home show",
  args: { ...jsonArg },
  run: async ({ json }) => {
    const { root } = locateHome();
    printAnswer(json, { root }, root);
    return 0;
  },
});

const move = defineVerb({
  name: "home move",
  description: "Move the data out of the checkout or to another directory.",
  example: "hearth home move",
  args: {
    to: {
      type: "string",
      description: "Target (default: the user's data directory)",
      valueHint: "path",
    },
    ...jsonArg,
  },
  run: async ({ to, json }) => {
    const from = locateHome();
    const target = locateHome({ HEARTH_HOME: to ?? defaultHomeRoot() });
    const named = namedHomeRoot(from.checkout);
    await moveHome(from, target);
    const env = { ...process.env, HEARTH_HOME: named };
    const settings = settingsIn(from.checkout);
    const sentences = sentencesAfterMove(from, target, settings, env);
    printAnswer(
      json,
      { from: from.root, to: target.root, notes: sentences },
      sentences.join("\n"),
    );
    return 0;
  },
});

export const home: Verb = {
  name: "home",
  description: "Show or move the data directory.",
  example: "hearth home move",
  verbs: { show: async () => show, move: async () => move },
};

/** Settings of the operator in the checkout, relative to it. */
function settingsIn(checkout: string): readonly string[] {
  return globSync("config/*.local.yaml", { cwd: checkout }).toSorted();
}

/** The result of a move and the remaining steps. */
export function sentencesAfterMove(
  from: Pick<Home, "root">,
  to: Pick<Home, "root">,
  settings: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const isDefault = to.root === resolve(defaultHomeRoot(env));
  const named = env["HEARTH_HOME"] ?? "";
  return [
    `Moved ${from.root} to ${to.root}.`,
    ...(isDefault || (named !== "" && resolve(named) === to.root)
      ? []
      : [
          `Set HEARTH_HOME=${to.root} for every command: this is not the default directory.`,
        ]),
    ...(isDefault && named !== "" && resolve(named) !== to.root
      ? [
          `Unset HEARTH_HOME, which is still ${named}: the data is now in the default directory.`,
        ]
      : []),
    ...(settings.length === 0
      ? []
      : [
          `Settings in the checkout were not moved and remain valid: ${settings.join(", ")}. They can be moved to ${join(to.root, "config")}.`,
        ]),
    "If Hearth starts at boot, run `hearth service install` again: the unit contains the path.",
  ];
}

/** Moves all data. Throws a Failure without changing anything when Hearth is running or the target is in use. */
async function moveHome(from: Home, to: Home): Promise<void> {
  if (from.root === to.root) {
    throw new Failure(`the data is already in ${from.root}.`);
  }
  if (isNewHome(from)) {
    throw new Failure(`no data found in ${from.root}.`);
  }
  if (existsSync(to.root) && !isNewHome(to)) {
    throw new Failure(
      `${to.root} contains data of another Hearth: choose another directory with --to.`,
    );
  }
  needStopped(from);
  mkdirSync(dirname(to.root), { recursive: true });
  // Left by commands that ran there without starting Hearth.
  rmSync(to.root, { recursive: true, force: true });
  const systemData = systemPlaceOf(from);
  await moveDirectory(from.root, to.root);
  // Build contexts and compiled code are created again when needed.
  for (const name of ["images", "cache"]) {
    rmSync(join(to.root, name), { recursive: true, force: true });
  }
  placeMovedPostgres(to, systemData);
}

/** Exported for tests. */
export async function moveDirectory(from: string, to: string): Promise<void> {
  try {
    renameSync(from, to);
  } catch (error) {
    if (codeOf(error) !== "EXDEV") {
      throw error;
    }
    const next = `${to}.moving`;
    rmSync(next, { recursive: true, force: true });
    // Keeps owners: the files of Postgres may belong to a separate user.
    const { ok, reason } = executeSync("cp", ["-a", from, next]);
    if (!ok) {
      rmSync(next, { recursive: true, force: true });
      throw new Failure(
        `cannot copy ${from} (${reason}); nothing was changed.`,
      );
    }
    // The copy is on the disk before anything is removed.
    await syncTree(next);
    renameSync(next, to);
    syncDirectory(dirname(to));
    // A home of which an interrupted removal left a part would still be in use.
    const moved = `${from}.moved`;
    renameSync(from, moved);
    rmSync(moved, { recursive: true });
  }
}
