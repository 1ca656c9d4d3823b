import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  realpathSync,
  statSync,
  statfsSync,
} from "node:fs";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Failure, sentencesOf } from "../failure.ts";

/** Where everything of the embedded stack lies. All paths absolute. */
export type Home = {
  readonly root: string;
  readonly project: string;
  readonly postgres: string;
  readonly notes: string;
  readonly notesIni: string;
  readonly echoConfig: string;
  readonly journal: string;
  readonly logs: string;
  /** One folder a kind, one in it for each backup. */
  readonly backups: string;
  readonly reports: string;
  /** Single secrets as files (0600), each named as the variable it stands for. */
  readonly handed: string;
  readonly history: string;
  readonly runFile: string;
  readonly secrets: string;
  readonly lock: string;
  /** Compiled sources: programs start faster and smaller with it. */
  readonly compileCache: string;
};

export const projectRoot: string = fileURLToPath(
  new URL("../..", import.meta.url),
).replace(/\/$/, "");

const bytesNeeded = 128 * 1024 * 1024;

/** The places under HEARTH_HOME, or `.hearth` in the project. Nothing is made. */
export function locateHome(
  env: Readonly<Record<string, string | undefined>> = process.env,
): Home {
  const asked = env["HEARTH_HOME"];
  const root =
    asked === undefined || asked === ""
      ? join(projectRoot, ".hearth")
      : resolve(asked);
  return {
    root,
    project: projectRoot,
    postgres: join(root, "postgres"),
    notes: join(root, "notes"),
    notesIni: join(root, "notes.ini"),
    echoConfig: join(root, "echo.yaml"),
    journal: join(root, "journal"),
    logs: join(root, "logs"),
    backups: join(root, "backups"),
    reports: join(root, "reports"),
    handed: join(root, "handed"),
    history: join(root, "supervisor.db"),
    runFile: join(root, "run.json"),
    secrets: join(root, "secrets.json"),
    lock: join(root, "supervisor.lock"),
    compileCache: join(root, "cache"),
  };
}

/** Makes the directories (0700) and looks for room on the disk. */
export function makeHome(home: Home): void {
  try {
    mkdirSync(home.root, { recursive: true, mode: 0o700 });
    for (const path of [home.notes, home.journal, home.logs, home.handed])
      mkdirSync(path, { recursive: true, mode: 0o700 });
    // Others never read it; they may pass through where Postgres runs as a user of its own (see postgres-place.ts).
    chmodSync(home.root, (statSync(home.root).mode & 0o711) | 0o700);
    const disk = statfsSync(home.root);
    const free = disk.bavail * disk.bsize;
    if (free < bytesNeeded)
      throw new Failure(
        `the disk that holds ${home.root} has ${mib(free)} MiB left, Hearth needs ${mib(bytesNeeded)} to start: free some, or choose another place with HEARTH_HOME.`,
      );
  } catch (error) {
    throw error instanceof Failure
      ? error
      : new Failure(sentencesOf(error, home.root), error);
  }
}

/** Whether nothing was ever started here. */
export function isNewHome(home: Home): boolean {
  return ![home.runFile, home.notesIni, home.postgres].some((path) =>
    existsSync(path),
  );
}

/** A short name for a home that is the same at every start: 16 hex digits. */
export function homeHash(home: Home): string {
  const path = existsSync(home.root) ? realpathSync(home.root) : home.root;
  return createHash("sha256").update(path).digest("hex").slice(0, 16);
}

/** A path as a person at `cwd` would type it. */
export function asTyped(path: string, cwd: string = process.cwd()): string {
  const short = relative(cwd, path);
  return short.startsWith("..") || short === "" ? path : short;
}

function mib(bytes: number): number {
  return Math.floor(bytes / 1024 / 1024);
}
