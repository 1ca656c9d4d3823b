import { existsSync, readFileSync, rmSync } from "node:fs";
import { createInterface } from "node:readline/promises";
import { lockHome } from "../supervisor/home/lock.ts";
import { locateHome, type Home } from "../supervisor/home/home.ts";
import { systemPlaceOf } from "../embedded/postgres-place.ts";
import { Failure } from "../core/failure.ts";
import {
  aliveIn,
  readRunFile,
} from "../supervisor/runtimes/process/run-file.ts";
import { installedIn } from "../supervisor/release/release.ts";
import { findServiceManager } from "../embedded/service/service-manager.ts";
import { print } from "./terminal.ts";
import { defineVerb } from "./verb.ts";

export const uninstall = defineVerb({
  name: "uninstall",
  description: "Remove what was installed; asks whether data goes, too.",
  example: "hearth uninstall --keep-data",
  args: {
    "keep-data": {
      type: "boolean",
      description: "Keep keys, spend, notes and backups; do not ask",
    },
    "delete-data": {
      type: "boolean",
      description: "Delete keys, spend, notes and all backups here; do not ask",
    },
  },
  run: async ({ "keep-data": keep, "delete-data": remove }) => {
    const home = locateHome();
    if (keep && remove) {
      throw new Failure(
        "--keep-data and --delete-data contradict each other: give one of them.",
      );
    }
    if (!existsSync(home.root)) {
      print(`Nothing to remove: there is no ${home.root}.`);
      return 0;
    }
    const deletes = keep ? false : remove || (await askToDelete(home));
    if (deletes === undefined) {
      print("Nothing was changed.");
      return 1;
    }
    removeService(home);
    needStopped(home);
    const programs = systemPlaceOf(home);
    if (deletes) {
      rmSync(programs, { recursive: true, force: true });
      rmSync(home.root, { recursive: true, force: true });
      print(`Deleted: ${home.root}, with all data.`);
    } else {
      for (const path of [...installedIn(home), home.compileCache]) {
        rmSync(path, { recursive: true, force: true });
      }
      print(
        `Hearth is removed; its data stays in ${home.root}. \`npm start\` in a checkout uses it again.`,
      );
    }
    print(
      `What is left to delete by hand: the checkout, ${home.checkout}.${deletes ? " Copies of backups elsewhere are not touched." : ""}`,
    );
    return 0;
  },
});

/** Undefined: neither; without a terminal nobody can be asked. */
async function askToDelete(home: Home): Promise<boolean | undefined> {
  if (!process.stdin.isTTY) {
    throw new Failure(
      "nobody can be asked without a terminal: give --keep-data or --delete-data.",
    );
  }
  const lines = createInterface({
    input: process.stdin,
    output: process.stdout,
  });
  try {
    print(
      `Hearth's data is in ${home.root}: keys, spend, notes, and backups kept on this machine.`,
    );
    const answer = await lines.question(
      'Type "keep" to keep the data, "delete" to delete it for good, anything else to cancel: ',
    );
    return { keep: false, delete: true }[answer.trim().toLowerCase()];
  } finally {
    lines.close();
  }
}

/** Another home's service is left alone. */
function removeService(home: Home): void {
  if (process.platform !== "linux" && process.platform !== "darwin") {
    return;
  }
  const manager = findServiceManager(process.getuid?.() === 0);
  const isOurs =
    existsSync(manager.path) &&
    readFileSync(manager.path, "utf8").includes(home.root);
  if (isOurs && manager.remove()) {
    print(`Hearth no longer starts at boot (${manager.path} is deleted).`);
  }
}

/** Throws a Failure while anything of it runs. */
function needStopped(home: Home): void {
  const lock = existsSync(home.lock) ? lockHome(home.lock) : undefined;
  const held = existsSync(home.lock) && lock === undefined;
  lock?.release();
  const { services } = readRunFile(home.runFile);
  const left = Object.entries(services).filter(
    ([, entry]) => aliveIn(entry) !== undefined,
  );
  if (held || left.length > 0) {
    throw new Failure(
      "Hearth is running: stop it with `hearth down`, then run the command again.",
    );
  }
}
