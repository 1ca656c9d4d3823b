import { readFileSync } from "node:fs";
import {
  findCopyKey,
  keyId,
  makeAndKeepCopyKey,
  markShown,
} from "../supervisor/backup/copy-key.ts";
import type { PeerCopy } from "../supervisor/backup/send-copy.ts";
import { sizeWords } from "../core/size.ts";
import { inWords } from "../core/duration.ts";
import { locateHome, makeHome } from "../supervisor/home/home.ts";
import { Failure, codeOf } from "../core/failure.ts";
import type { BackupView } from "../console/http/backup-routes.ts";
import { printTable, runJob } from "./job-run.ts";
import { addressArg, findStack, type StackClient } from "./stack-client.ts";
import { complain, print, type Cell } from "./terminal.ts";
import { defineVerb, type ExitCode, type Verb } from "./verb.ts";

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
  args: {
    peer: {
      type: "boolean",
      description: "The copies that the other host keeps",
    },
    json,
    ...addressArg,
  },
  run: async ({ peer, json, url }) => {
    if (peer === true) {
      return listPeer(findStack(url), json === true);
    }
    const backups = await listOf(findStack(url));
    if (json) {
      print(JSON.stringify(backups, null, 2));
    } else if (backups.length === 0) {
      print("There is no backup yet: `hearth backup run` takes one.");
    } else {
      printTable(["backup", "of", "age", "size", ""], backups.map(backupRow));
    }
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

async function listPeer(stack: StackClient, json: boolean): Promise<ExitCode> {
  const { copies } = (await stack.ask("GET", "/api/peer-copies")) as {
    readonly copies: readonly PeerCopy[];
  };
  if (json) {
    print(JSON.stringify(copies, null, 2));
  } else if (copies.length === 0) {
    print("The other host has no copy yet: `hearth jobs run backup-copy`.");
  } else {
    printTable(
      ["copy", "of", "size", "key"],
      copies.map(({ name, kind, bytes, keyId }) => [
        { text: name, tone: "strong" },
        { text: kind },
        { text: sizeWords(bytes), right: true },
        { text: keyId, tone: "soft" },
      ]),
    );
  }
  return 0;
}

function backupRow(backup: BackupView): readonly Cell[] {
  const { name, kind, takenAt, bytes, problem } = backup;
  return [
    { text: name, tone: "strong" },
    { text: kind },
    { text: inWords(Date.now() - takenAt), right: true },
    { text: sizeWords(bytes), right: true },
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

const fetch = defineVerb({
  name: "backup fetch",
  description: "Bring a copy back from the other host and decrypt it.",
  example: "hearth backup fetch --key-file key.txt",
  args: {
    name: {
      type: "positional",
      required: false,
      description: "A copy that `hearth backup list --peer` shows",
    },
    kind: {
      type: "string",
      description: "postgres (usual) or notes",
      valueHint: "postgres|notes",
    },
    "key-file": {
      type: "string",
      description: "A file with the key, where this host has lost it",
      valueHint: "file",
    },
    json,
    ...addressArg,
  },
  run: async ({ name, kind, "key-file": keyFile, json, url }) =>
    (
      await runJob(
        findStack(url),
        "backup-fetch",
        {
          ...(name === undefined ? {} : { name }),
          ...(kind === undefined ? {} : { kind }),
          ...(keyFile === undefined ? {} : { key: keyIn(keyFile) }),
        },
        json,
      )
    ).code,
});

function keyIn(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new Failure(
      `${file} cannot be read (${codeOf(error)}): give --key-file a file with the key that \`hearth backup key\` showed.`,
    );
  }
}

const key = defineVerb({
  name: "backup key",
  description: "Show, once, the key that opens the copies on the other host.",
  example: "hearth backup key",
  args: {
    new: {
      type: "boolean",
      description: "Make another one; copies of before open with the old one",
    },
  },
  run: async ({ new: anew }) => {
    const home = locateHome();
    makeHome(home);
    const known = anew === true ? undefined : findCopyKey(home, process.env);
    if (known !== undefined && known.shownAt !== null) {
      throw new Failure(
        "the key was shown already, and it is shown once: where it is lost, `hearth backup key --new` makes another for the copies to come.",
      );
    }
    const shown = known ?? makeAndKeepCopyKey(home, Date.now());
    print(shown.key);
    complain([
      `  This key (${keyId(shown.key)}) opens the copies of your backups on the other host.`,
      "  Keep it away from both hosts: on paper, in a password manager. It is not shown again.",
    ]);
    markShown(home, shown, Date.now());
    return 0;
  },
});

export const backup: Verb = {
  name: "backup",
  description: "Back up Postgres, list backups, see whether they are whole.",
  example: "hearth backup run",
  verbs: {
    run: async () => run,
    list: async () => list,
    verify: async () => verify,
    fetch: async () => fetch,
    key: async () => key,
  },
};
