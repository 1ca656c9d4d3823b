import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { writeDurably } from "../core/durable-file.ts";
import { locateHome, makeHome } from "../supervisor/home/home.ts";
import { makeIdentity } from "../supervisor/offsite/age.ts";
import {
  findOffsite,
  needOffsite,
  openOffsite,
  readIdentity,
  storeOffsite,
  type OffsitePlace,
} from "../supervisor/offsite/settings.ts";
import { backupsIn } from "../supervisor/offsite/store.ts";
import { printTable, runJob } from "./job-run.ts";
import { restore } from "./offsite-restore.ts";
import { addressArg, findStack } from "./stack-client.ts";
import { complain, print } from "./terminal.ts";
import { defineVerb, type Verb } from "./verb.ts";

const ANSWER_WITHIN_MS = 120_000;
const json = { type: "boolean", description: "Print it as JSON" } as const;

const setup = defineVerb({
  name: "offsite setup",
  description: "Set the target of off-site backups, and try to write to it.",
  example: "hearth offsite setup nas:hearth",
  args: {
    target: {
      type: "positional",
      required: true,
      description:
        "REMOTE:PATH as rclone takes it, or the path of another disk",
    },
    "key-file": {
      type: "string",
      description: "A file with an age identity to use, not a new one",
      valueHint: "file",
    },
  },
  run: async ({ target, "key-file": keyFile }) => {
    const home = locateHome();
    makeHome(home);
    const known = findOffsite(home, process.env)?.identity;
    const identity =
      keyFile === undefined
        ? (known ?? (await makeIdentity()))
        : await readIdentity(keyFile);
    const settings = { target, identity };
    storeOffsite(home, settings);
    await tryToWrite(await openOffsite(home, process.env, settings, "setup"));
    print(identity);
    complain([
      `  This identity decrypts the off-site backups at ${target}. Keep a copy away from this machine: on paper, in a password`,
      "  manager. Without it nothing there can be read. (`hearth offsite key` prints it again.)",
      "  Backups are uploaded each night; `hearth offsite run` uploads the newest now.",
    ]);
    return 0;
  },
});

/** A target that can be read and not written would fail at night. */
async function tryToWrite({ remote, staging }: OffsitePlace): Promise<void> {
  const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
  const name = "write-test";
  mkdirSync(staging, { recursive: true, mode: 0o700 });
  try {
    writeDurably(join(staging, name), "written by hearth offsite setup\n");
    await remote.upload(staging, signal);
    await remote.remove([name], signal);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

const key = defineVerb({
  name: "offsite key",
  description: "Print the age identity that decrypts the off-site backups.",
  example: "hearth offsite key",
  args: {
    new: {
      type: "boolean",
      description:
        "Print a new one, for a stack's configuration; nothing is stored",
    },
  },
  run: async ({ new: fresh }) => {
    print(
      fresh === true
        ? await makeIdentity()
        : needOffsite(locateHome(), process.env).identity,
    );
    return 0;
  },
});

const run = defineVerb({
  name: "offsite run",
  description: "Upload the newest backups to the off-site target now.",
  example: "hearth offsite run",
  args: { json, ...addressArg },
  run: async ({ json, url }) => {
    needOffsiteHere(url);
    return (await runJob(findStack(url), "offsite-copy", {}, json)).code;
  },
});

/** Where the supervisor is asked at another address, only it knows. */
function needOffsiteHere(url: string | undefined): void {
  const home = locateHome();
  if (url === undefined && existsSync(home.secrets)) {
    needOffsite(home, process.env);
  }
}

const list = defineVerb({
  name: "offsite list",
  description: "The backups at the off-site target, newest first.",
  example: "hearth offsite list",
  args: { json },
  run: async ({ json }) => {
    const home = locateHome();
    const settings = needOffsite(home, process.env);
    const { remote } = await openOffsite(home, process.env, settings, "list");
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
    const backups = backupsIn(await remote.list(signal));
    if (json) {
      print(JSON.stringify(backups, null, 2));
    } else if (backups.length === 0) {
      print(
        `${settings.target} has no backup yet: \`hearth offsite run\` uploads one.`,
      );
    } else {
      printTable(
        ["backup", "of"],
        backups.map(({ name, kind }) => [
          { text: name, tone: "strong" },
          { text: kind },
        ]),
      );
    }
    return 0;
  },
});

const fetch = defineVerb({
  name: "offsite fetch",
  description: "Download a backup from the off-site target and decrypt it.",
  example: "hearth offsite fetch --kind notes",
  args: {
    name: {
      type: "positional",
      required: false,
      description: "A backup that `hearth offsite list` shows; else the newest",
    },
    kind: {
      type: "string",
      description: "postgres (usual) or notes",
      valueHint: "postgres|notes",
    },
    json,
    ...addressArg,
  },
  run: async ({ name, kind, json, url }) =>
    (
      await runJob(
        findStack(url),
        "offsite-fetch",
        {
          ...(name === undefined ? {} : { name }),
          ...(kind === undefined ? {} : { kind }),
        },
        json,
      )
    ).code,
});

export const offsite: Verb = {
  name: "offsite",
  description:
    "Encrypted backups away from this machine, at any target of rclone.",
  example: "hearth offsite setup nas:hearth",
  verbs: {
    setup: async () => setup,
    key: async () => key,
    run: async () => run,
    list: async () => list,
    fetch: async () => fetch,
    restore: async () => restore,
  },
};
