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
import { locateHome, createHome } from "../supervisor/home/home.ts";
import { Failure, codeOf } from "../core/failure.ts";
import type { BackupView } from "../console/http/backup-routes.ts";
import { runJob } from "./job-run.ts";
import { addressArg, findStack, type StackClient } from "./stack-client.ts";
import {
  complain,
  print,
  printJson,
  printList,
  type Cell,
} from "./terminal.ts";
import { defineVerb, jsonArg, type ExitCode, type Verb } from "./verb.ts";

const run = defineVerb({
  name: "backup run",
  description: "Back up Postgres now.",
  example: "hearth backup run",
  args: {
    "pg-dump": {
      type: "boolean",
      description: "Also write a dump for pg_restore",
    },
    ...jsonArg,
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
  description: "List the backups on this host, newest first.",
  example: "hearth backup list",
  args: {
    peer: {
      type: "boolean",
      description: "List the copies on the other host",
    },
    ...jsonArg,
    ...addressArg,
  },
  run: async ({ peer, json, url }) => {
    if (peer === true) {
      return listPeer(findStack(url), json === true);
    }
    const backups = await listOf(findStack(url));
    printList(json, backups, {
      empty: "No backups yet. Run `hearth backup run` to create one.",
      headings: ["backup", "kind", "age", "size", "state"],
      rowOf: backupRow,
    });
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
  printList(json, copies, {
    empty:
      "No copies on the other host yet. Run `hearth jobs run backup-copy` to send one.",
    headings: ["copy", "kind", "size", "key"],
    rowOf: ({ name, kind, bytes, keyId }) => [
      { text: name, tone: "strong" },
      { text: kind },
      { text: sizeWords(bytes), right: true },
      { text: keyId, tone: "soft" },
    ],
  });
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
      ? { text: "complete", tone: "ok" }
      : { text: problem, tone: "bad" },
  ];
}

const verify = defineVerb({
  name: "backup verify",
  description: "Read a backup and compare its checksums.",
  example: "hearth backup verify 2026-11-21T030000Z",
  args: {
    name: {
      type: "positional",
      required: false,
      description: "A backup of Postgres (default: the newest)",
    },
    ...jsonArg,
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
  description: "Fetch a copy from the other host and decrypt it.",
  example: "hearth backup fetch --key-file key.txt",
  args: {
    name: {
      type: "positional",
      required: false,
      description: "A copy from `hearth backup list --peer`",
    },
    kind: {
      type: "string",
      description: "postgres (default) or notes",
      valueHint: "postgres|notes",
    },
    "key-file": {
      type: "string",
      description: "A file with the key, if this host lost it",
      valueHint: "file",
    },
    ...jsonArg,
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
      `cannot read ${file} (${codeOf(error)}): --key-file must be a file with the key that \`hearth backup key\` printed.`,
    );
  }
}

const key = defineVerb({
  name: "backup key",
  description:
    "Show, once, the key that decrypts the copies on the other host.",
  example: "hearth backup key",
  args: {
    new: {
      type: "boolean",
      description: "Create a new key; earlier copies still need the old one",
    },
    ...jsonArg,
  },
  run: async ({ new: replace, json }) => {
    const home = locateHome();
    createHome(home);
    const known = replace === true ? undefined : findCopyKey(home, process.env);
    if (known !== undefined && known.shownAt !== null) {
      throw new Failure(
        "the key was already shown; it is shown only once. If it is lost, run `hearth backup key --new` to create a key for future copies.",
      );
    }
    const shown = known ?? makeAndKeepCopyKey(home, Date.now());
    if (json) {
      printJson({ key: shown.key, keyId: keyId(shown.key) });
    } else {
      print(shown.key);
      complain([
        `  This key (${keyId(shown.key)}) decrypts the copies of your backups on the other host.`,
        "  Store it away from both hosts, on paper or in a password manager. It is not shown again.",
      ]);
    }
    markShown(home, shown, Date.now());
    return 0;
  },
});

export const backup: Verb = {
  name: "backup",
  description: "Back up Postgres; list and verify backups.",
  example: "hearth backup run",
  verbs: {
    run: async () => run,
    list: async () => list,
    verify: async () => verify,
    fetch: async () => fetch,
    key: async () => key,
  },
};
