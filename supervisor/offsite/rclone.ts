import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import type { Environment } from "../../core/environment.ts";
import { execute, lastLineOf } from "../../core/execute.ts";
import { Failure } from "../../core/failure.ts";

/** A folder of a remote of rclone: a bucket, another machine, a mounted disk. Paths are relative to it. */
export interface Remote {
  /** All files with their sizes. */
  readonly list: (signal: AbortSignal) => Promise<ReadonlyMap<string, number>>;
  /** Names of the sibling folders. */
  readonly siblings: (signal: AbortSignal) => Promise<readonly string[]>;
  /** Uploads every file of a local directory. */
  readonly upload: (directory: string, signal: AbortSignal) => Promise<void>;
  /** Downloads files into a local directory. */
  readonly download: (
    paths: readonly string[],
    directory: string,
    signal: AbortSignal,
  ) => Promise<void>;
  readonly remove: (
    paths: readonly string[],
    signal: AbortSignal,
  ) => Promise<void>;
}

interface RemotePlace {
  /** In rclone's syntax: `nas:backups`, `/mnt/disk`. */
  readonly target: string;
  readonly folder: string;
  /** A file with remotes; rclone's own if undefined. */
  readonly config: string | undefined;
  readonly env: Environment;
  /** A file for lists of names. */
  readonly nameList: string;
}

const listed = z.array(z.looseObject({ Path: z.string(), Size: z.number() }));
/** rclone's exit code for a missing directory. */
const NOT_FOUND = 3;

export function openRemote(place: RemotePlace): Remote {
  const { target, nameList } = place;
  const root = /[:/]$/.test(target)
    ? `${target}${place.folder}`
    : `${target}/${place.folder}`;

  /** Names are passed in a file: the length of a command line is limited. */
  async function withNames(
    paths: readonly string[],
    work: (list: string) => Promise<unknown>,
  ): Promise<void> {
    if (paths.length === 0) {
      return;
    }
    mkdirSync(dirname(nameList), { recursive: true, mode: 0o700 });
    writeFileSync(nameList, `${paths.join("\n")}\n`, { mode: 0o600 });
    await work(nameList).finally(() => rmSync(nameList, { force: true }));
  }

  return {
    list: async (signal) => {
      const text = await run(
        place,
        [
          "lsjson",
          "--recursive",
          "--files-only",
          "--no-modtime",
          "--no-mimetype",
          root,
        ],
        signal,
        [NOT_FOUND],
      );
      const files = text === "" ? [] : listed.parse(JSON.parse(text));
      return new Map(files.map(({ Path, Size }) => [Path, Size]));
    },
    siblings: async (signal) => {
      const args = ["lsf", "--dirs-only", target];
      const text = await run(place, args, signal, [NOT_FOUND]);
      return text
        .split("\n")
        .map((line) => line.replace(/\/$/, ""))
        .filter((name) => name !== "");
    },
    upload: async (directory, signal) => {
      await run(place, ["copy", directory, root], signal);
    },
    download: (paths, directory, signal) =>
      withNames(paths, (list) =>
        run(place, ["copy", "--files-from", list, root, directory], signal),
      ),
    remove: (paths, signal) =>
      withNames(paths, (list) =>
        run(place, ["delete", "--files-from", list, root], signal),
      ),
  };
}

/** Runs rclone and returns its output, which is empty for exit codes in `emptyCodes`. Throws a Failure with rclone's reason. */
async function run(
  { target, config, env }: RemotePlace,
  args: readonly string[],
  signal: AbortSignal,
  emptyCodes: readonly number[] = [],
): Promise<string> {
  const { ok, stdout, stderr, exitCode, startError, reason } = await execute(
    "rclone",
    buildArgs(args, config),
    { env, signal },
  );
  if (ok) {
    return stdout;
  }
  if (startError === "ENOENT") {
    throw new Failure(
      "rclone is not installed on this machine: run `apt install rclone` (macOS: `brew install rclone`), then retry.",
    );
  }
  if (startError !== undefined) {
    throw new Failure(`${reason}.`);
  }
  if (exitCode !== undefined && emptyCodes.includes(exitCode)) {
    return "";
  }
  throw new Failure(
    `rclone ${args[0]} failed at ${target} (${reasonIn(stderr)}): check the target with \`rclone lsd ${target}\`.`,
  );
}

function buildArgs(
  args: readonly string[],
  config: string | undefined,
): readonly string[] {
  return [
    ...args,
    ...(config === undefined ? [] : ["--config", config]),
    // A job has no terminal for password prompts.
    "--ask-password=false",
    "--contimeout=30s",
    "--timeout=5m",
    "--retries=3",
    "--stats=0",
    "--log-level=ERROR",
  ];
}

/** The last line of rclone's log without its time and level. */
function reasonIn(log: string): string {
  return (
    lastLineOf(log)
      .replace(/^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d /, "")
      .replace(/^(ERROR|Failed to \w+|CRITICAL) *: */, "") || "no reason given"
  );
}
