import { existsSync, readFileSync, rmSync } from "node:fs";
import { createInterface } from "node:readline/promises";
import { locateHome, type Home } from "../supervisor/home/home.ts";
import { systemPlaceOf } from "../embedded/postgres-place.ts";
import { installedIn } from "../supervisor/release/release.ts";
import { findServiceManager } from "../embedded/service/service-manager.ts";
import { needStopped } from "./stack-client.ts";
import { print, printJson } from "./terminal.ts";
import { defineVerb, jsonArg, UsageError } from "./verb.ts";

export const uninstall = defineVerb({
  name: "uninstall",
  description: "Remove Hearth; asks whether to delete the data.",
  example: "hearth uninstall --keep-data",
  args: {
    "keep-data": {
      type: "boolean",
      description: "Keep keys, spend, notes and backups without asking",
    },
    "delete-data": {
      type: "boolean",
      description:
        "Delete keys, spend, notes and all local backups without asking",
    },
    ...jsonArg,
  },
  run: async ({ "keep-data": keep, "delete-data": remove, json }) => {
    const home = locateHome();
    const say = json ? () => {} : print;
    const report = (removed: boolean, dataDeleted: boolean) => {
      if (json) {
        const { root, checkout } = home;
        printJson({ removed, dataDeleted, home: root, checkout });
      }
    };
    if (keep && remove) {
      throw new UsageError("--keep-data and --delete-data cannot be combined.");
    }
    if (!existsSync(home.root)) {
      report(false, false);
      say(`Nothing to remove: ${home.root} not found.`);
      return 0;
    }
    const mayAsk = json !== true && process.stdin.isTTY;
    const deletes = keep ? false : remove || (await askToDelete(home, mayAsk));
    if (deletes === undefined) {
      print("Nothing was changed.");
      return 1;
    }
    removeService(home, say);
    needStopped(home);
    const programs = systemPlaceOf(home);
    if (deletes) {
      rmSync(programs, { recursive: true, force: true });
      rmSync(home.root, { recursive: true, force: true });
      say(`Deleted ${home.root} with all data.`);
    } else {
      for (const path of [...installedIn(home), home.compileCache]) {
        rmSync(path, { recursive: true, force: true });
      }
      say(
        `Hearth removed; its data is kept in ${home.root} and used again by \`npm start\` in a checkout.`,
      );
    }
    report(true, deletes);
    say(
      `To complete the removal, delete the checkout ${home.checkout}.${deletes ? " Copies of backups elsewhere are kept." : ""}`,
    );
    return 0;
  },
});

/** Undefined: cancelled. Throws a UsageError without a terminal to ask. */
async function askToDelete(
  home: Home,
  mayAsk: boolean,
): Promise<boolean | undefined> {
  if (!mayAsk) {
    throw new UsageError(
      "--keep-data or --delete-data is required without a terminal and with --json.",
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
      'Type "keep" to keep the data, "delete" to delete it permanently, anything else to cancel: ',
    );
    return { keep: false, delete: true }[answer.trim().toLowerCase()];
  } finally {
    lines.close();
  }
}

/** Removes the service of this home only. */
function removeService(home: Home, say: (sentence: string) => void): void {
  if (process.platform !== "linux" && process.platform !== "darwin") {
    return;
  }
  const manager = findServiceManager(process.getuid?.() === 0);
  const isOurs =
    existsSync(manager.path) &&
    readFileSync(manager.path, "utf8").includes(home.root);
  if (isOurs && manager.remove()) {
    say(`Hearth no longer starts at boot (${manager.path} deleted).`);
  }
}
