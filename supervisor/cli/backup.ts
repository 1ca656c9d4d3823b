import { inWords } from "../duration.ts";
import type { BackupView } from "../http/backup-routes.ts";
import { printTable, runJob } from "./job-run.ts";
import { addressArg, findStack, type StackClient } from "./stack-client.ts";
import { print, type Cell } from "./terminal.ts";
import { defineVerb, type Verb } from "./verb.ts";

const json = { type: "boolean", description: "Print it as JSON" } as const;

const run = defineVerb({
  name: "backup run",
  description: "Back up Postgres now.",
  example: "hearth backup run",
  args: {
    "pg-dump": {
      type: "boolean",
      description: "Also write a dump that pg_restore reads",
    },
    json,
    ...addressArg,
  },
  run: async ({ "pg-dump": pgDump, json, url }) =>
    (
      await runJob(
        findStack(url),
        "postgres-backup",
        pgDump === true ? { pgDump } : {},
        json,
      )
    ).code,
});

const list = defineVerb({
  name: "backup list",
  description: "The backups on this host, newest first.",
  example: "hearth backup list",
  args: { json, ...addressArg },
  run: async ({ json, url }) => {
    const backups = await listOf(findStack(url));
    if (json) print(JSON.stringify(backups, null, 2));
    else if (backups.length === 0)
      print("There is no backup yet: `hearth backup run` takes one.");
    else
      printTable(["backup", "of", "age", "size", ""], backups.map(backupRow));
    return backups.some(({ problem }) => problem !== null) ? 1 : 0;
  },
});

export async function listOf(
  stack: StackClient,
): Promise<readonly BackupView[]> {
  const answer = (await stack.ask("GET", "/api/backups")) as {
    readonly backups: readonly BackupView[];
  };
  return answer.backups;
}

function backupRow(backup: BackupView): readonly Cell[] {
  const { name, kind, takenAt, bytes, problem } = backup;
  return [
    { text: name, tone: "strong" },
    { text: kind },
    { text: inWords(Date.now() - takenAt), right: true },
    { text: `${(bytes / 1e6).toFixed(1)} MB`, right: true },
    problem === null
      ? { text: "whole", tone: "ok" }
      : { text: problem, tone: "bad" },
  ];
}

const verify = defineVerb({
  name: "backup verify",
  description: "Read a backup again and compare its checksums.",
  example: "hearth backup verify 2026-11-21T030000Z",
  args: {
    name: {
      type: "positional",
      required: false,
      description: "A backup of Postgres; the newest when left out",
    },
    json,
    ...addressArg,
  },
  run: async ({ name, json, url }) =>
    (
      await runJob(
        findStack(url),
        "backup-verify",
        name === undefined ? {} : { backup: name },
        json,
      )
    ).code,
});

export const backup: Verb = {
  name: "backup",
  description: "Back up Postgres, list backups, see whether they are whole.",
  example: "hearth backup run",
  verbs: {
    run: async () => run,
    list: async () => list,
    verify: async () => verify,
  },
};
