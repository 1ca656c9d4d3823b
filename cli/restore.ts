import { createInterface } from "node:readline/promises";
import { backupPlaces } from "../supervisor/backup/backup-jobs.ts";
import { redisPlace } from "../supervisor/backup/forget-limits.ts";
import { momentOf } from "../supervisor/backup/manifest.ts";
import { peerOf } from "../supervisor/backup/peer.ts";
import {
  RESTART_WITHIN_MS,
  restore as restoreBackup,
  type RestorePlaces,
} from "../supervisor/backup/restore.ts";
import { chooseBackup } from "../supervisor/backup/which-backup.ts";
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
import { defineVerb, UsageError } from "./verb.ts";

export const restore = defineVerb({
  name: "restore",
  description:
    "Put a backup of Postgres in place of an empty database (that of RESTORE_DATABASE_URL, where it is set), and bring the gateways back.",
  example: "hearth restore 2026-11-21T030000Z",
  args: {
    name: {
      type: "positional",
      required: false,
      description: "A backup that `hearth backup list` shows; else the newest",
    },
    "set-aside": {
      type: "boolean",
      description: "Keep a database that is not empty under another name",
    },
    yes: { type: "boolean", description: "Do not ask" },
    json: { type: "boolean", description: "Print it as JSON" },
    ...addressArg,
  },
  run: async ({ name, "set-aside": setAside, yes, json, url }) => {
    const databaseUrl = readVariable("RESTORE_DATABASE_URL");
    if (databaseUrl !== undefined && url !== undefined) {
      throw new UsageError(
        "RESTORE_DATABASE_URL is for the machine that has the backup: leave --url out, and run `hearth restore` there.",
      );
    }
    const stack = databaseUrl === undefined ? findStack(url) : undefined;
    const chosen =
      stack === undefined ? backupHere(name) : await backupAt(stack, name);
    const age = inWords(Date.now() - chosen.takenAt);
    const place = databaseUrl === undefined ? "" : ` at ${hostOf(databaseUrl)}`;
    if (yes !== true) {
      await confirm(
        `Put ${chosen.name} (${age} old) in place of ${setAside === true ? "the database" : "the empty database"}${place}${setAside === true ? ", which is kept under another name" : ""}, and restart the gateways?`,
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
  const chosen =
    name === undefined
      ? known[0]
      : known.find((backup) => backup.name === name);
  if (chosen !== undefined) {
    return chosen;
  }
  throw new Failure(
    name === undefined
      ? "there is no backup of Postgres here: `hearth backup fetch` brings one from the other host."
      : `there is no backup "${name}": \`hearth backup list\` shows what there is.`,
  );
}

function backupHere(name: string | undefined): ChosenBackup {
  const { directory } = backupPlaces(locateHome(), process.env);
  const chosen = chooseBackup(directory, name);
  return { name: chosen, takenAt: momentOf(chosen) ?? 0 };
}

/**
 * What the restore job has, with an address of Postgres that the operator gave to this command: where backups go is decided on the
 * machine that has them.
 */
function placesHere(databaseUrl: string | undefined): RestorePlaces {
  const home = locateHome();
  const { env } = process;
  const runs =
    supervisorHere(home) !== undefined ||
    readVariable("HEARTH_URL", env) !== undefined;
  const password =
    givenPassword(env) ?? readSecretsFile(home)?.operatorPassword ?? "";
  return {
    ...backupPlaces(home, env),
    databaseUrl,
    redis: redisPlace(env),
    peer: peerOf(env, password),
    restartGateway: runs
      ? () =>
          findStack(undefined).ask(
            "POST",
            "/api/restart/gateway",
            RESTART_WITHIN_MS,
          )
      : undefined,
  };
}

/** Without the password that is in it. */
function hostOf(databaseUrl: string): string {
  if (!/^postgres(ql)?:/.test(databaseUrl) || !URL.canParse(databaseUrl)) {
    throw new Failure(
      "RESTORE_DATABASE_URL must be an address such as postgres://postgres:…@postgres:5432/hearth.",
    );
  }
  const { host, pathname } = new URL(databaseUrl);
  return `${host}${pathname}`;
}

/** Throws a Failure unless a person at a terminal says yes. */
async function confirm(question: string): Promise<void> {
  if (!process.stdin.isTTY) {
    throw new Failure(
      "a restore asks before it begins, and there is nobody to ask: add --yes.",
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
