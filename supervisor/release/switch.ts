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
 * A supervisor becomes that of another release: on SIGUSR2 the same process runs the other release's program, so it keeps
 * its terminal and its place with systemd. What it started goes on; the new supervisor takes over each service in turn.
 */

const NEXT = "next";
/** In the environment of a supervisor that was switched to: the release before it. */
const FROM_VARIABLE = "HEARTH_SWITCHED_FROM";
/** In the environment of a supervisor that was switched back to: why. */
const FAILED_VARIABLE = "HEARTH_SWITCH_FAILED";

/** Names the release that the running supervisor switches to when it gets SIGUSR2. */
export function announceNext(home: Home, id: string): void {
  pointTo(home, NEXT, id);
}

/** Resolves with the announced release when this process is told to switch. */
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

/** How this process came to run this release. Read once: programs that it starts must not see it. */
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

/** For a start that failed: goes back to the release before, if this was a switch from one. */
export function goBack(
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
    `Release ${own.id} did not become healthy, so ${from.id} runs again: ${sentencesOf(error).join(" ")}`,
  );
}

/** Runs this very program as another release has it, in this process. Nothing that must be closed may be open. */
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
    throw new Error("this Node cannot replace its program");
  }
  return process.execve(
    node,
    [node, ...process.execArgv, program, ...process.argv.slice(2)],
    env,
  );
}
