import { createInterface } from "node:readline/promises";
import { backupPlaces } from "../supervisor/backup/backup-jobs.ts";
import { redisPlace } from "../supervisor/backup/forget-limits.ts";
import { findBackup, momentOf } from "../supervisor/backup/manifest.ts";
import { peerOf } from "../supervisor/backup/peer.ts";
import {
  RESTART_WITHIN_MS,
  restore as restoreBackup,
  type RestorePlaces,
} from "../supervisor/backup/restore.ts";
import { restoreAddress } from "../supervisor/backup/restore-address.ts";
import {
  chooseBackup,
  WHERE_TO_FETCH,
} from "../supervisor/backup/which-backup.ts";
import { givenPassword } from "../supervisor/credentials.ts";
import { inWords } from "../core/duration.ts";
import { locateHome } from "../supervisor/home/home.ts";
import { readSecretsFile } from "../supervisor/home/secrets.ts";
import { readVariable } from "../core/environment.ts";
import { Failure } from "../core/failure.ts";
import type { BackupView } from "../console/http/backup-routes.ts";
import { listOf } from "./backup.ts";
import { runHere, runJob } from "./job-run.ts";
import {
  addressArg,
  findStack,
  supervisorHere,
  type StackClient,
} from "./stack-client.ts";
import { print } from "./terminal.ts";
import { defineVerb, jsonArg, UsageError } from "./verb.ts";

export const restore = defineVerb({
  name: "restore",
  description:
    "Restore a backup of Postgres into an empty database (RESTORE_DATABASE_URL, if set) and restart the gateways.",
  example: "hearth restore 2026-11-21T030000Z",
  args: {
    name: {
      type: "positional",
      required: false,
      description: "A backup from `hearth backup list` (default: the newest)",
    },
    "set-aside": {
      type: "boolean",
      description: "Rename a database that is not empty instead of failing",
    },
    yes: { type: "boolean", description: "Do not ask for confirmation" },
    ...jsonArg,
    ...addressArg,
  },
  run: async ({ name, "set-aside": setAside, yes, json, url }) => {
    const databaseUrl = restoreAddress();
    if (databaseUrl !== undefined && url !== undefined) {
      throw new UsageError(
        "RESTORE_DATABASE_URL cannot be combined with --url: run `hearth restore` without --url on the machine that has the backup.",
      );
    }
    const stack = databaseUrl === undefined ? findStack(url) : undefined;
    const chosen =
      stack === undefined ? backupHere(name) : await backupAt(stack, name);
    const age = inWords(Date.now() - chosen.takenAt);
    const place = databaseUrl === undefined ? "" : ` at ${hostOf(databaseUrl)}`;
    if (yes !== true) {
      await confirm(
        `Restore ${chosen.name} (${age} old) into ${setAside === true ? "a new database" : "the empty database"}${place}${setAside === true ? ", keep the existing one under another name" : ""}, and restart the gateways?`,
      );
    } else if (json !== true) {
      print(`Restoring ${chosen.name}, ${age} old.`);
    }
    const options = {
      backup: chosen.name,
      ...(setAside === true ? { setAside } : {}),
    };
    if (stack !== undefined) {
      return (await runJob(stack, "restore", options, json)).code;
    }
    await runHere("restore", json === true, options, (context) =>
      restoreBackup(placesHere(databaseUrl), context),
    );
    return 0;
  },
});

type ChosenBackup = Pick<BackupView, "name" | "takenAt">;

async function backupAt(
  stack: StackClient,
  name: string | undefined,
): Promise<ChosenBackup> {
  const known = (await listOf(stack)).filter(({ kind }) => kind === "postgres");
  const chosen = findBackup(known, name, Date.now());
  if (chosen !== undefined) {
    return chosen;
  }
  throw name === undefined
    ? new Failure(
        `no backup of Postgres found here. Fetch one: ${WHERE_TO_FETCH}.`,
      )
    : new UsageError(
        `backup "${name}" not found. Run \`hearth backup list\` for all backups.`,
      );
}

function backupHere(name: string | undefined): ChosenBackup {
  const { directory } = backupPlaces(locateHome(), process.env);
  const chosen = chooseBackup("postgres", directory, name, Date.now());
  return { name: chosen, takenAt: momentOf(chosen) ?? 0 };
}

/**
 * The places of the restore job, with the address of Postgres that the operator gave to this command: the location of backups is
 * configured on the machine that has them.
 */
function placesHere(databaseUrl: string | undefined): RestorePlaces {
  const home = locateHome();
  const { env } = process;
  const isRunning =
    supervisorHere(home) !== undefined ||
    readVariable("HEARTH_URL", env) !== undefined;
  const password =
    givenPassword(env) ?? readSecretsFile(home)?.operatorPassword ?? "";
  return {
    ...backupPlaces(home, env),
    databaseUrl,
    redis: redisPlace(env),
    peer: peerOf(env, password),
    restartGateway: isRunning
      ? () =>
          findStack(undefined).ask(
            "POST",
            "/api/restart/gateway",
            RESTART_WITHIN_MS,
          )
      : undefined,
  };
}

/** The address without its password. */
function hostOf(databaseUrl: string): string {
  if (!/^postgres(ql)?:/.test(databaseUrl) || !URL.canParse(databaseUrl)) {
    throw new Failure(
      "RESTORE_DATABASE_URL must be an address such as postgres://postgres:…@postgres:5432/hearth.",
    );
  }
  const { host, pathname } = new URL(databaseUrl);
  return `${host}${pathname}`;
}

/** Throws a UsageError without a terminal, and a Failure unless the question is answered with yes. */
async function confirm(question: string): Promise<void> {
  if (!process.stdin.isTTY) {
    throw new UsageError(
      "a restore requires confirmation: add --yes, or run the command in a terminal.",
    );
  }
  const terminal = createInterface({
    input: process.stdin,
    output: process.stderr,
  });
  const answer = await terminal.question(`${question} [y/N] `);
  terminal.close();
  if (!/^y(es)?$/i.test(answer.trim())) {
    throw new Failure("nothing was restored.");
  }
}
