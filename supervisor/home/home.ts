import { createHash } from "node:crypto";
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  statSync,
} from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { Failure, sentencesOf } from "../../core/failure.ts";
import { freeBytesOf } from "../../core/free-bytes.ts";
import { dataIn } from "./data-in-use.ts";
import { earlierHomeRoot, findHomeRoot } from "./home-root.js";
import { mebibytes } from "../../core/size.ts";

/** Where everything of the embedded stack lies. All paths absolute. */
export interface Home {
  readonly root: string;
  /** What runs: a release, or a checkout where it runs without one. */
  readonly project: string;
  /** Where relative paths of the operator's settings begin: the checkout, while there is one. */
  readonly checkout: string;
  /** The data directory in use when the home was located. */
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
}

export const projectRoot: string = fileURLToPath(
  new URL("../..", import.meta.url),
).replace(/\/$/, "");

const BYTES_NEEDED = 128 * 1024 * 1024;

/** The places under HEARTH_HOME, or where home-root.js says. Nothing is made. */
export function locateHome(
  env: Readonly<Record<string, string | undefined>> = process.env,
): Home {
  const root = findHomeRoot(projectRoot, env);
  return {
    root,
    project: projectRoot,
    checkout: checkoutOf(projectRoot),
    postgres: dataIn(root),
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

/** A release remembers where it was made from. (Read without its schema: release.ts imports this file.) */
function checkoutOf(project: string): string {
  try {
    const text = readFileSync(join(project, "release.json"), "utf8");
    const { checkout } = JSON.parse(text) as { readonly checkout: string };
    accessSync(checkout, constants.R_OK | constants.X_OK);
    return checkout;
  } catch {
    return project;
  }
}

/**
 * A file of the operator's own settings, such as `gateway.local.yaml`: in the checkout's `config/` where there is one already,
 * and always where no release runs; else in the home, where no `git clean` reaches it.
 */
export function operatorFile(home: Home, name: string): string {
  const inCheckout = join(home.checkout, "config", name);
  return home.project === home.checkout || existsSync(inCheckout)
    ? inCheckout
    : join(home.root, "config", name);
}

/** Makes the directories (0700) and looks for room on the disk. */
export function makeHome(home: Home): void {
  try {
    mkdirSync(home.root, { recursive: true, mode: 0o700 });
    for (const path of [home.notes, home.journal, home.logs, home.handed]) {
      mkdirSync(path, { recursive: true, mode: 0o700 });
    }
    // Others never read it; they may pass through where Postgres runs as a user of its own (see postgres-place.ts).
    chmodSync(home.root, (statSync(home.root).mode & 0o711) | 0o700);
    const free = freeBytesOf(home.root);
    // One that was in use starts on a full disk, too: what is there can be read, and people are alerted.
    if (free < BYTES_NEEDED && !existsSync(home.history)) {
      throw new Failure(
        `the disk that holds ${home.root} has ${mebibytes(free)} MiB left, Hearth needs ${mebibytes(BYTES_NEEDED)} to start: free some, or choose another place with HEARTH_HOME.`,
      );
    }
  } catch (error) {
    throw error instanceof Failure
      ? error
      : new Failure(sentencesOf(error, home.root), error);
  }
}

/** What an operator should know of where the data is. */
export function placeNotices(home: Home): readonly string[] {
  return earlierHomeRoot(home.checkout) === home.root
    ? [
        `all data is in the checkout (${home.root}), where \`git clean -fdx\` deletes it: \`hearth down\`, then \`hearth home move\` moves it out.`,
      ]
    : [];
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
