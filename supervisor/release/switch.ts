import { join, relative } from "node:path";
import { readlinkSync, rmSync } from "node:fs";
import { projectRoot, type Home } from "../home/home.ts";
import { codeOf, sentencesOf } from "../../core/failure.ts";
import {
  ownRelease,
  pointTo,
  readRelease,
  releaseDirectory,
  releasesOf,
  type Release,
} from "./release.ts";

/**
 * Switching the supervisor to another release: on SIGUSR2 the process executes the program of that release, so it keeps its
 * terminal and its unit in systemd. Services continue to run; the new supervisor takes over each in turn.
 */

const NEXT = "next";
/** In the environment of a supervisor after a switch: the previous release. */
const FROM_VARIABLE = "HEARTH_SWITCHED_FROM";
/** In the environment of a supervisor after switching back: the reason. */
const FAILED_VARIABLE = "HEARTH_SWITCH_FAILED";

/** Announces the release that the running supervisor switches to on SIGUSR2. */
export function announceNext(home: Home, id: string): void {
  pointTo(home, NEXT, id);
}

/** Resolves with the announced release on SIGUSR2. */
export function untilSwitchAsked(home: Home): Promise<Release> {
  return new Promise((resolve) => {
    process.on("SIGUSR2", () => {
      const release = takeNext(home);
      if (release !== undefined) {
        resolve(release);
      }
    });
  });
}

/** The announced release, once. */
function takeNext(home: Home): Release | undefined {
  const path = join(releasesOf(home), NEXT);
  try {
    const id = readlinkSync(path);
    rmSync(path);
    return readRelease(releaseDirectory(home, id));
  } catch (error) {
    if (codeOf(error) === "ENOENT") {
      return undefined;
    }
    throw error;
  }
}

/** How this process came to run this release. Removed from the environment: child processes must not see it. */
export function readSwitched(home: Home): {
  readonly upgradeFrom: Release | undefined;
  readonly notices: readonly string[];
} {
  const from = process.env[FROM_VARIABLE];
  const failed = process.env[FAILED_VARIABLE];
  delete process.env[FROM_VARIABLE];
  delete process.env[FAILED_VARIABLE];
  return {
    upgradeFrom:
      from === undefined
        ? undefined
        : readRelease(releaseDirectory(home, from)),
    notices: failed === undefined ? [] : [failed],
  };
}

/** Switches back to the previous release after a failed start, if this was a switch. */
export function switchBack(
  home: Home,
  from: Release | undefined,
  error: unknown,
): void {
  const own = ownRelease();
  if (from === undefined || own === undefined) {
    return;
  }
  becomeRelease(
    home,
    from,
    `Release ${own.id} did not become healthy; switched back to ${from.id}: ${sentencesOf(error).join(" ")}`,
  );
}

/** Executes this program of another release in this process. Open resources are not closed. */
export function becomeRelease(
  home: Home,
  target: Release,
  failed?: string,
): never {
  const directory = releaseDirectory(home, target.id);
  const program = join(directory, relative(projectRoot, process.argv[1] ?? ""));
  const own = ownRelease();
  const env = Object.fromEntries(
    Object.entries({
      ...process.env,
      HEARTH_HOME: home.root,
      [FROM_VARIABLE]: failed === undefined ? own?.id : undefined,
      [FAILED_VARIABLE]: failed,
    }).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  const node = join(directory, "node_modules", "node", "bin", "node");
  if (process.execve === undefined) {
    throw new Error("this version of Node cannot replace the running program");
  }
  return process.execve(
    node,
    [node, ...process.execArgv, program, ...process.argv.slice(2)],
    env,
  );
}
