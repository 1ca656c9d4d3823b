import { spawn } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import type { Environment } from "../../core/environment.ts";
import { codeOf, Failure, textOf } from "../../core/failure.ts";

/** One folder of a remote that rclone reaches: a cloud's bucket, another machine, a mounted disk. Paths are relative to it. */
export interface Remote {
  /** Every file below it, with its size. */
  readonly list: (signal: AbortSignal) => Promise<ReadonlyMap<string, number>>;
  /** Names of the folders beside it. */
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

export interface RemotePlace {
  /** As rclone takes it: `nas:backups`, `/mnt/disk`. */
  readonly target: string;
  readonly folder: string;
  /** A file with remotes; rclone's own when undefined. */
  readonly config: string | undefined;
  readonly env: Environment;
  /** A file for lists of names. */
  readonly nameList: string;
}

const listed = z.array(z.looseObject({ Path: z.string(), Size: z.number() }));
/** rclone's exit code for a directory that is not there. */
const NOT_THERE = 3;

export function openRemote(place: RemotePlace): Remote {
  const { target, nameList } = place;
  const root = /[:/]$/.test(target)
    ? `${target}${place.folder}`
    : `${target}/${place.folder}`;

  /** rclone reads which files from a file: a command line has an end. */
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
        [NOT_THERE],
      );
      const files = text === "" ? [] : listed.parse(JSON.parse(text));
      return new Map(files.map(({ Path, Size }) => [Path, Size]));
    },
    siblings: async (signal) => {
      const args = ["lsf", "--dirs-only", target];
      const text = await run(place, args, signal, [NOT_THERE]);
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

/** Runs rclone and answers what it printed. Throws a Failure with its reason; `alsoFine` are exit codes that count as empty. */
async function run(
  { target, config, env }: RemotePlace,
  args: readonly string[],
  signal: AbortSignal,
  alsoFine: readonly number[] = [],
): Promise<string> {
  const child = spawn("rclone", buildArgs(args, config), {
    env: { ...env },
    stdio: ["ignore", "pipe", "pipe"],
    signal,
  });
  let output = "";
  let complaint = "";
  child.stdout.setEncoding("utf8");
  child.stdout.on("data", (text: string) => (output += text));
  child.stderr.on("data", (chunk: Buffer) => {
    complaint = (complaint + chunk.toString()).slice(-4000);
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw new Failure(
      codeOf(error) === "ENOENT"
        ? "rclone is not installed on this machine: `apt install rclone` (macOS: `brew install rclone`), then run the command again."
        : `rclone could not run: ${textOf(error)}.`,
    );
  });
  if (code === 0) {
    return output;
  }
  if (code !== null && alsoFine.includes(code)) {
    return "";
  }
  throw new Failure(
    `rclone ${args[0]} failed at ${target} (${reasonIn(complaint)}): check the target with \`rclone lsd ${target}\`.`,
  );
}

export function buildArgs(
  args: readonly string[],
  config: string | undefined,
): readonly string[] {
  return [
    ...args,
    ...(config === undefined ? [] : ["--config", config]),
    // A job has no terminal to type a password at.
    "--ask-password=false",
    "--contimeout=30s",
    "--timeout=5m",
    "--retries=3",
    "--stats=0",
    "--log-level=ERROR",
  ];
}

/** The last of rclone's lines without its time and level. */
function reasonIn(complaint: string): string {
  const line = complaint.trim().split("\n").at(-1) ?? "";
  return (
    line
      .replace(/^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d /, "")
      .replace(/^(ERROR|Failed to \w+|CRITICAL) *: */, "")
      .replace(/\.$/, "") || "it gave no reason"
  );
}
