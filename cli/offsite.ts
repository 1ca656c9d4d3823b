import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { writeDurably } from "../core/durable-file.ts";
import { locateHome, createHome } from "../supervisor/home/home.ts";
import { makeIdentity } from "../supervisor/offsite/age.ts";
import {
  faultOfTarget,
  findOffsite,
  needOffsite,
  openOffsite,
  readIdentity,
  storeOffsite,
  type OffsitePlace,
} from "../supervisor/offsite/settings.ts";
import { backupsIn } from "../supervisor/offsite/store.ts";
import { runJob } from "./job-run.ts";
import { restore } from "./offsite-restore.ts";
import { addressArg, findStack } from "./stack-client.ts";
import {
  complain,
  print,
  printAnswer,
  printJson,
  printList,
} from "./terminal.ts";
import { defineVerb, jsonArg, UsageError, type Verb } from "./verb.ts";

const TIMEOUT_MS = 120_000;

const setup = defineVerb({
  name: "offsite setup",
  description: "Set the target of off-site backups and test writing to it.",
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
      description: "A file with an existing age identity (default: a new one)",
      valueHint: "file",
    },
    ...jsonArg,
  },
  run: async ({ target, "key-file": keyFile, json }) => {
    const fault = faultOfTarget(target);
    if (fault !== null) {
      throw new UsageError(fault);
    }
    const home = locateHome();
    createHome(home);
    const known = findOffsite(home, process.env)?.identity;
    const identity =
      keyFile === undefined
        ? (known ?? (await makeIdentity()))
        : await readIdentity(keyFile);
    const settings = { target, identity };
    await tryToWrite(await openOffsite(home, process.env, settings, "setup"));
    storeOffsite(home, settings);
    if (json) {
      printJson({ target, identity });
      return 0;
    }
    print(identity);
    complain([
      `  This identity decrypts the off-site backups at ${target}. Keep a copy away from this machine, on paper or in a password`,
      "  manager: without it the backups cannot be read. (`hearth offsite key` prints it again.)",
      "  Backups are uploaded each night; `hearth offsite run` uploads the newest now.",
      ...(isOnSameDisk(target, home.root)
        ? [
            `  ${target} is on the disk of Hearth's own data: if another disk belongs there, mount it and run this command again.`,
          ]
        : []),
    ]);
    return 0;
  },
});

/** The mount point of a disk that is not mounted is on the disk of its parent. */
function isOnSameDisk(target: string, own: string): boolean {
  return target.startsWith("/") && statSync(target).dev === statSync(own).dev;
}

/** Detects a target without write access now rather than in the nightly job. */
async function tryToWrite({ remote, staging }: OffsitePlace): Promise<void> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
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
        "Print a new identity, for a stack's configuration; nothing is stored",
    },
    ...jsonArg,
  },
  run: async ({ new: fresh, json }) => {
    const identity =
      fresh === true
        ? await makeIdentity()
        : needOffsite(locateHome(), process.env).identity;
    printAnswer(json, { identity }, identity);
    return 0;
  },
});

const run = defineVerb({
  name: "offsite run",
  description: "Upload the newest backups to the off-site target now.",
  example: "hearth offsite run",
  args: { ...jsonArg, ...addressArg },
  run: async ({ json, url }) => {
    needOffsiteHere(url);
    return (await runJob(findStack(url), "offsite-copy", {}, json)).code;
  },
});

/** With --url, the settings are those of the other supervisor. */
function needOffsiteHere(url: string | undefined): void {
  const home = locateHome();
  if (url === undefined && existsSync(home.secrets)) {
    needOffsite(home, process.env);
  }
}

const list = defineVerb({
  name: "offsite list",
  description: "List the backups at the off-site target, newest first.",
  example: "hearth offsite list",
  args: { ...jsonArg },
  run: async ({ json }) => {
    const home = locateHome();
    const settings = needOffsite(home, process.env);
    const { remote } = await openOffsite(home, process.env, settings, "list");
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const backups = backupsIn(await remote.list(signal));
    printList(json, backups, {
      empty: `No backups at ${settings.target} yet. Run \`hearth offsite run\` to upload one.`,
      headings: ["backup", "kind"],
      rowOf: ({ name, kind }) => [
        { text: name, tone: "strong" },
        { text: kind },
      ],
    });
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
      description: "A backup from `hearth offsite list` (default: the newest)",
    },
    kind: {
      type: "string",
      description: "postgres (default) or notes",
      valueHint: "postgres|notes",
    },
    ...jsonArg,
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
  description: "Encrypted off-site backups at any rclone target.",
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
