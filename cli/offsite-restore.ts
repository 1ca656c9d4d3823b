import { isNewHome, locateHome, createHome } from "../supervisor/home/home.ts";
import { readVariable } from "../core/environment.ts";
import {
  faultOfTarget,
  findOffsite,
  needOffsite,
  openOffsite,
  readIdentity,
  storeOffsite,
} from "../supervisor/offsite/settings.ts";
import { takeSettings } from "../supervisor/offsite/new-machine.ts";
import { backupsIn, type OffsiteKind } from "../supervisor/offsite/store.ts";
import { runJob } from "./job-run.ts";
import { restore as restoreHere } from "./restore.ts";
import { findStack, supervisorHere } from "./stack-client.ts";
import { complain, print, printJson } from "./terminal.ts";
import { up } from "./up.ts";
import { defineVerb, runVerb, UsageError, type ExitCode } from "./verb.ts";

const SETTINGS_WITHIN_MS = 300_000;

export const restore = defineVerb({
  name: "offsite restore",
  description:
    "Restore Postgres and the notes from the off-site target, also on a new machine.",
  example: "hearth offsite restore --target nas:hearth --key-file key.txt",
  args: {
    target: {
      type: "string",
      description: "Location of the backups, if not configured on this machine",
      valueHint: "REMOTE:PATH",
    },
    "key-file": {
      type: "string",
      description:
        "A file with the age identity, if not configured on this machine",
      valueHint: "file",
    },
    postgres: {
      type: "string",
      description: "Backup of Postgres (default: the newest)",
      valueHint: "name",
    },
    notes: {
      type: "string",
      description: "Backup of the notes (default: the newest)",
      valueHint: "name",
    },
    "set-aside": {
      type: "boolean",
      description: "Rename a database that is not empty instead of failing",
    },
    json: {
      type: "boolean",
      description: "Print each step as a JSON document",
    },
  },
  run: async ({
    target,
    "key-file": keyFile,
    "set-aside": aside,
    json,
    ...names
  }) => {
    const asJson = json === true ? ["--json"] : [];
    await storeSettings(target, keyFile);
    const isStackElsewhere = readVariable("HEARTH_URL") !== undefined;
    if (!isStackElsewhere && supervisorHere(locateHome()) === undefined) {
      await prepareNewHome(names.postgres, json === true);
      const code = await runVerb(up, ["--detach", ...asJson]);
      if (code !== 0) {
        return code;
      }
    }
    const kinds = await kindsAtTarget();
    const codes: ExitCode[] = [];
    if (kinds.has("postgres")) {
      codes.push(
        await restorePostgres(names.postgres, [
          ...(aside === true ? ["--set-aside"] : []),
          ...asJson,
        ]),
      );
    }
    if (kinds.has("notes")) {
      codes.push(await restoreNotes(names.notes, json));
    }
    if (codes.length === 0) {
      complain(["no backup found at the target; nothing was restored."]);
    }
    return codes.length > 0 && codes.every((code) => code === 0) ? 0 : 1;
  },
});

/** Stores target and identity if they are given. */
async function storeSettings(
  target: string | undefined,
  keyFile: string | undefined,
): Promise<void> {
  const home = locateHome();
  if (target === undefined && keyFile === undefined) {
    needOffsite(home, process.env);
    return;
  }
  createHome(home);
  const known = findOffsite(home, process.env);
  const settings = {
    target: target ?? known?.target,
    identity:
      keyFile === undefined ? known?.identity : await readIdentity(keyFile),
  };
  if (settings.target === undefined || settings.identity === undefined) {
    throw new UsageError(
      "--target and --key-file are required on a new machine: hearth offsite restore --target nas:hearth --key-file key.txt",
    );
  }
  const fault = faultOfTarget(settings.target);
  if (fault !== null) {
    throw new UsageError(fault);
  }
  storeOffsite(home, {
    target: settings.target,
    identity: settings.identity,
  });
}

async function prepareNewHome(
  name: string | undefined,
  json: boolean,
): Promise<void> {
  const home = locateHome();
  if (!isNewHome(home)) {
    return;
  }
  const { env } = process;
  const settings = needOffsite(home, env);
  const place = await openOffsite(home, env, settings, "settings");
  const signal = AbortSignal.timeout(SETTINGS_WITHIN_MS);
  const taken = await takeSettings(home, place, name, signal);
  if (json) {
    printJson({ settings: taken });
  } else if (taken.length > 0) {
    print(`Restored from the backup: ${taken.join(", ")}.`);
  }
}

async function kindsAtTarget(): Promise<ReadonlySet<OffsiteKind>> {
  const home = locateHome();
  const { env } = process;
  const place = await openOffsite(home, env, needOffsite(home, env), "list");
  const files = await place.remote.list(
    AbortSignal.timeout(SETTINGS_WITHIN_MS),
  );
  return new Set(backupsIn(files).map(({ kind }) => kind));
}

async function restorePostgres(
  name: string | undefined,
  options: readonly string[],
): Promise<ExitCode> {
  const json = options.includes("--json");
  const fetched = await fetchBackup("postgres", name, json);
  if (fetched === undefined) {
    return 1;
  }
  return runVerb(restoreHere, [fetched, "--yes", ...options]);
}

async function restoreNotes(
  name: string | undefined,
  json: boolean | undefined,
): Promise<ExitCode> {
  const backup = await fetchBackup("notes", name, json);
  if (backup === undefined) {
    return 1;
  }
  const stack = findStack(undefined);
  return (await runJob(stack, "notes-restore", { backup }, json)).code;
}

/** Returns the name of the backup, downloaded if necessary; undefined when that failed. */
async function fetchBackup(
  kind: OffsiteKind,
  name: string | undefined,
  json: boolean | undefined,
): Promise<string | undefined> {
  const { run, code } = await runJob(
    findStack(undefined),
    "offsite-fetch",
    { kind, ...(name === undefined ? {} : { name }) },
    json,
  );
  const backup = run.details?.["backup"];
  return code === 0 && typeof backup === "string" ? backup : undefined;
}
