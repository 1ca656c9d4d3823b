import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { probeSettings } from "./doctor/probe-programs.ts";
import { DAY_MS, inWords } from "../core/duration.ts";
import { locateHome, type Home } from "../supervisor/home/home.ts";
import { stopLeftGateway } from "../embedded/gateway.ts";
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
import { resultOf, runJobUntilEnd } from "./job-run.ts";
import { findStack, supervisorHere } from "./stack-client.ts";
import { print, printJson } from "./terminal.ts";
import { defineVerb, jsonArg, type ExitCode } from "./verb.ts";

/** Includes the time for running calls of the gateway to finish and for Postgres to replay its log. */
const SWITCH_TIMEOUT_MS = 600_000;
/** Another major version of Postgres copies all data first. */
const MIGRATION_TIMEOUT_MS = DAY_MS;
const POLL_MS = 250;

export const upgrade = defineVerb({
  name: "upgrade",
  description:
    "Switch to this checkout's version, or back to the previous one.",
  example: "hearth upgrade",
  args: {
    back: {
      type: "boolean",
      description: "Switch back to the previous release",
    },
    "dry-run": {
      type: "boolean",
      description: "Only show what would change",
    },
    "forget-old": {
      type: "boolean",
      description: "Delete the previous release and earlier database clusters",
    },
    ...jsonArg,
  },
  run: async ({ back, "dry-run": dryRun, "forget-old": forgetOld, json }) => {
    const home = locateHome();
    const out = json ? jsonOutput() : textOutput;
    if (forgetOld) {
      return forget(home, out);
    }
    const { supervisor, from } = findRunning(home);
    const to = back ? releaseBefore(home, from) : ownRelease();
    if (to === undefined) {
      throw new Failure(
        "this program is not a release: run `npx hearth upgrade` in the checkout.",
      );
    }
    const names = { from: nameOf(from), to: nameOf(to) };
    if (to.id === from.id) {
      out.say(`Release ${names.to} is already running.`);
      out.end({ ...names, changes: [], switched: false });
      return 0;
    }
    checkSameGeneration(from, to);
    out.say(back ? "Switching back:" : "Upgrading:");
    const changes = describeChanges(changesOf(from, to));
    changes.forEach(out.say);
    if (dryRun) {
      out.end({ ...names, changes, switched: false });
      return 0;
    }
    if (!back) {
      await checkSettings(home);
    }
    const backedUp = await backUp(out);
    if (backedUp !== 0) {
      out.end({ ...names, changes, switched: false });
      return backedUp;
    }
    out.say("Switching services one by one, without interrupting calls …");
    announceNext(home, to.id);
    sendSignal(supervisor, "SIGUSR2");
    const code = await untilSwitched(home, supervisor, { from, to }, out);
    out.end({ ...names, changes, switched: code === 0 });
    return code;
  },
});

/** Sentences as they come, and one document at the end of a command. */
interface Output {
  /** Whether progress is hidden. */
  readonly quiet: boolean;
  readonly say: (sentence: string) => void;
  readonly end: (result: Readonly<Record<string, unknown>>) => void;
}

const textOutput: Output = { quiet: false, say: print, end: () => {} };

function jsonOutput(): Output {
  const sentences: string[] = [];
  return {
    quiet: true,
    say: (sentence) => sentences.push(sentence),
    end: (result) => printJson({ ...result, sentences }),
  };
}

function findRunning(home: Home): {
  readonly supervisor: ProcessIdentity;
  readonly from: Release;
} {
  const supervisor = supervisorHere(home);
  if (supervisor === undefined) {
    throw new Failure(
      "Hearth is not running here. Run `hearth up` to start this checkout's version.",
    );
  }
  const from =
    supervisor.release == null
      ? undefined
      : readRelease(releaseDirectory(home, supervisor.release));
  if (from === undefined) {
    throw new Failure(
      "the running Hearth was not started as a release and cannot be switched. Run `hearth down`, then `hearth up`.",
    );
  }
  return { supervisor, from };
}

function releaseBefore(home: Home, from: Release): Release {
  const previous = linkedRelease(home, "previous");
  if (previous === undefined || previous.id === from.id) {
    throw new Failure(
      `no release before ${nameOf(from)} is available: check out the desired version, then run \`hearth upgrade\`.`,
    );
  }
  return previous;
}

/** Throws a Failure for mistakes that would prevent the new release from starting. */
async function checkSettings(home: Home): Promise<void> {
  const findings = await probeSettings(home, process.env);
  const mistakes = findings.filter(({ level }) => level === "wrong");
  if (mistakes.length > 0) {
    throw new Failure([
      ...mistakes.map(({ text }) => text),
      "the new release rejects the settings; nothing was changed. Fix them, then run the command again.",
    ]);
  }
}

async function backUp({ quiet, say }: Output): Promise<ExitCode> {
  const stack = findStack(undefined);
  for (const job of ["postgres-backup", "notes-backup"]) {
    say(`Backing up (${job}) …`);
    const { run, code } = await runJobUntilEnd(stack, job, {}, quiet);
    say(resultOf(run));
    if (code !== 0) {
      say("The backup failed; nothing was changed.");
      return code;
    }
  }
  return 0;
}

async function untilSwitched(
  home: Home,
  supervisor: ProcessIdentity,
  { from, to }: { readonly from: Release; readonly to: Release },
  out: Output,
): Promise<ExitCode> {
  const { say } = out;
  const startedAt = performance.now();
  const withinMs =
    majorChangeOf(from, to) === undefined
      ? SWITCH_TIMEOUT_MS
      : MIGRATION_TIMEOUT_MS;
  let left = false;
  while (performance.now() - startedAt < withinMs) {
    if (!isAlive(supervisor)) {
      return rescue(home, from, to, out);
    }
    const status = await readStatus();
    const runs = status?.supervisor.release;
    if (runs !== from.id || status?.phase !== "running") {
      left = true;
    }
    if (status?.phase === "running" && runs === to.id) {
      say(
        `Release ${nameOf(to)} is running after ${inWords(performance.now() - startedAt)}. Switch back to ${nameOf(from)} with \`hearth upgrade --back\`.`,
      );
      removeReleases(home, new Set([from.id, to.id]));
      return 0;
    }
    const failed = status?.notices.find((notice) =>
      notice.startsWith(`Release ${to.id} `),
    );
    if (left && status?.phase === "running" && runs === from.id && failed) {
      say(failed);
      return 1;
    }
    await sleep(POLL_MS);
  }
  say(
    `Release ${nameOf(to)} is not up after ${inWords(withinMs)}. Run \`hearth status\` and \`hearth logs supervisor\` for the reason.`,
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
    // No supervisor responds while one replaces the other.
    return undefined;
  }
}

/** The new supervisor exited before it could switch back; the services are still running. */
async function rescue(
  home: Home,
  from: Release,
  to: Release,
  { quiet, say }: Output,
): Promise<ExitCode> {
  say(
    `The supervisor of release ${nameOf(to)} exited, so ${nameOf(from)} is started again (run \`hearth logs supervisor\` for the reason).`,
  );
  // An earlier release does not look for it and would not start.
  await stopLeftGateway(home);
  const directory = releaseDirectory(home, from.id);
  executeSync(
    join(directory, "node_modules", "node", "bin", "node"),
    [join(directory, "supervisor", "cli", "main.ts"), "up", "--detach"],
    {
      ...IN_TERMINAL,
      ...(quiet ? { stdout: "ignore" } : {}),
      env: { ...process.env, HEARTH_HOME: home.root },
    },
  );
  return 1;
}

function forget(home: Home, out: Output): ExitCode {
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
  out.end({ removed });
  out.say(
    removed.length === 0
      ? "No earlier release to delete."
      : `Deleted ${removed.join(", ")}.${releases.length === 0 ? "" : " `hearth upgrade --back` is no longer possible."}`,
  );
  return 0;
}
