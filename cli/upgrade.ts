import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { lookAtSettings } from "./doctor/look-at-programs.ts";
import { inWords } from "../core/duration.ts";
import { locateHome, type Home } from "../supervisor/home/home.ts";
import { earlierClusters } from "../embedded/postgres-migration.ts";
import { executeSync, IN_TERMINAL } from "../core/execute.ts";
import { Failure } from "../core/failure.ts";
import {
  isAlive,
  type ProcessIdentity,
} from "../supervisor/runtimes/process/identity.ts";
import { sendSignal } from "../supervisor/runtimes/process/stop.ts";
import {
  changesOf,
  checkSameGeneration,
  describeChanges,
  majorChangeOf,
} from "../supervisor/release/changes.ts";
import {
  linkedRelease,
  nameOf,
  ownRelease,
  readRelease,
  releaseDirectory,
  removeReleases,
  type Release,
} from "../supervisor/release/release.ts";
import { announceNext } from "../supervisor/release/switch.ts";
import type { Status } from "../supervisor/status.ts";
import { runJob } from "./job-run.ts";
import { findStack, supervisorHere } from "./stack-client.ts";
import { print } from "./terminal.ts";
import { defineVerb, type ExitCode } from "./verb.ts";

/** The gateway may finish its calls first, and Postgres replay its log. */
const SWITCHED_WITHIN_MS = 600_000;
/** Another major version of Postgres copies all data first. */
const MIGRATED_WITHIN_MS = 24 * 3_600_000;
const LOOK_EVERY_MS = 250;

export const upgrade = defineVerb({
  name: "upgrade",
  description: "Switch to this checkout's version, or back.",
  example: "hearth upgrade",
  args: {
    back: {
      type: "boolean",
      description: "Switch back to the release before",
    },
    "dry-run": {
      type: "boolean",
      description: "Only show what would change",
    },
    "forget-old": {
      type: "boolean",
      description: "Delete what is kept for going back",
    },
  },
  run: async ({ back, "dry-run": dryRun, "forget-old": forgetOld }) => {
    const home = locateHome();
    if (forgetOld) {
      return forget(home);
    }
    const { supervisor, from } = findRunning(home);
    const to = back ? releaseBefore(home, from) : ownRelease();
    if (to === undefined) {
      throw new Failure(
        "this program is no release: run `npx hearth upgrade` in the checkout.",
      );
    }
    if (to.id === from.id) {
      print(`Release ${nameOf(to)} runs already; there is nothing to upgrade.`);
      return 0;
    }
    checkSameGeneration(from, to);
    print(back ? "Switching back:" : "Upgrading:");
    describeChanges(changesOf(from, to)).forEach(print);
    if (dryRun) {
      return 0;
    }
    if (!back) {
      await checkSettings(home);
    }
    const backedUp = await backUp();
    if (backedUp !== 0) {
      return backedUp;
    }
    print("Switching service by service; calls go on …");
    announceNext(home, to.id);
    sendSignal(supervisor, "SIGUSR2");
    return untilSwitched(home, supervisor, from, to);
  },
});

function findRunning(home: Home): {
  readonly supervisor: ProcessIdentity;
  readonly from: Release;
} {
  const supervisor = supervisorHere(home);
  if (supervisor === undefined) {
    throw new Failure(
      "Hearth is not running here, so there is nothing to switch: `hearth up` starts this checkout's version.",
    );
  }
  const from =
    supervisor.release == null
      ? undefined
      : readRelease(releaseDirectory(home, supervisor.release));
  if (from === undefined) {
    throw new Failure(
      "what runs was not started as a release, so it cannot be switched while it runs: `hearth down`, then `hearth up`.",
    );
  }
  return { supervisor, from };
}

function releaseBefore(home: Home, from: Release): Release {
  const previous = linkedRelease(home, "previous");
  if (previous === undefined || previous.id === from.id) {
    throw new Failure(
      `no release before ${nameOf(from)} is kept here: check out the version that you want, then \`hearth upgrade\`.`,
    );
  }
  return previous;
}

/** Mistakes that would keep the new release from starting. */
async function checkSettings(home: Home): Promise<void> {
  const findings = await lookAtSettings(home, process.env);
  const mistakes = findings.filter(({ level }) => level === "wrong");
  if (mistakes.length > 0) {
    throw new Failure([
      ...mistakes.map(({ text }) => text),
      "the new release cannot read the settings, so nothing was changed: fix them, then run the command again.",
    ]);
  }
}

async function backUp(): Promise<ExitCode> {
  const stack = findStack(undefined);
  for (const job of ["postgres-backup", "notes-backup"]) {
    print(`Backing up (${job}) …`);
    const { code } = await runJob(stack, job, {});
    if (code !== 0) {
      print("The backup failed, so nothing was changed.");
      return code;
    }
  }
  return 0;
}

async function untilSwitched(
  home: Home,
  supervisor: ProcessIdentity,
  from: Release,
  to: Release,
): Promise<ExitCode> {
  const begun = Date.now();
  const withinMs =
    majorChangeOf(from, to) === undefined
      ? SWITCHED_WITHIN_MS
      : MIGRATED_WITHIN_MS;
  let left = false;
  while (Date.now() - begun < withinMs) {
    if (!isAlive(supervisor)) {
      return rescue(home, from, to);
    }
    const status = await readStatus();
    const runs = status?.supervisor.release;
    if (runs !== from.id || status?.phase !== "running") {
      left = true;
    }
    if (status?.phase === "running" && runs === to.id) {
      print(
        `Release ${nameOf(to)} runs after ${inWords(Date.now() - begun)}. \`hearth upgrade --back\` switches back to ${nameOf(from)}.`,
      );
      removeReleases(home, new Set([from.id, to.id]));
      return 0;
    }
    const failed = status?.notices.find((notice) =>
      notice.startsWith(`Release ${to.id} `),
    );
    if (left && status?.phase === "running" && runs === from.id && failed) {
      print(failed);
      return 1;
    }
    await wait(LOOK_EVERY_MS);
  }
  print(
    `Release ${nameOf(to)} is not up after ${inWords(withinMs)}: \`hearth status\` and \`hearth logs supervisor\` show what it waits for.`,
  );
  return 1;
}

async function readStatus(): Promise<Status | undefined> {
  try {
    return (await findStack(undefined).ask(
      "GET",
      "/api/status",
      2000,
    )) as Status;
  } catch {
    // While one supervisor becomes the other, none answers.
    return undefined;
  }
}

/** The new supervisor ended before it could go back by itself; what serves still serves. */
function rescue(home: Home, from: Release, to: Release): ExitCode {
  print(
    `The supervisor of release ${nameOf(to)} ended, so ${nameOf(from)} is started again (\`hearth logs supervisor\` shows why).`,
  );
  const directory = releaseDirectory(home, from.id);
  executeSync(
    join(directory, "node_modules", "node", "bin", "node"),
    [join(directory, "supervisor", "cli", "main.ts"), "up", "--detach"],
    { ...IN_TERMINAL, env: { ...process.env, HEARTH_HOME: home.root } },
  );
  return 1;
}

function forget(home: Home): ExitCode {
  const current = linkedRelease(home, "current");
  const running = supervisorHere(home)?.release;
  const keep = new Set(
    [current?.id, running].filter((id) => typeof id === "string"),
  );
  const releases = removeReleases(home, keep);
  const clusters = earlierClusters(home);
  for (const path of clusters) {
    rmSync(path, { recursive: true, force: true });
  }
  const removed = [...releases.map(nameOf), ...clusters];
  print(
    removed.length === 0
      ? "No earlier release is kept."
      : `Deleted: ${removed.join(", ")}.${releases.length === 0 ? "" : " `hearth upgrade --back` is no longer possible."}`,
  );
  return 0;
}
