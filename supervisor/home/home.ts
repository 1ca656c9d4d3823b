import { hash } from "node:crypto";
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  readFileSync,
  realpathSync,
  statSync,
} from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { Failure, sentencesOf } from "../../core/failure.ts";
import { freeBytesOf } from "../../core/free-bytes.ts";
import { makeDirectory } from "../../core/make-directory.ts";
import { dataIn } from "./data-in-use.ts";
import { earlierHomeRoot, findHomeRoot } from "./home-root.js";
import { sizeWords } from "../../core/size.ts";

/** All paths of the embedded stack, absolute. */
export interface Home {
  readonly root: string;
  /** The running release, or the checkout without one. */
  readonly project: string;
  /** Base of relative paths in settings: the checkout, while there is one. */
  readonly checkout: string;
  /** The data directory in use when the home was located. */
  readonly postgres: string;
  readonly notes: string;
  readonly notesIni: string;
  readonly echoConfig: string;
  readonly journal: string;
  readonly logs: string;
  /** One folder per kind, with one folder per backup. */
  readonly backups: string;
  readonly reports: string;
  /** Single secrets as files (0600), named after their variables. */
  readonly handed: string;
  readonly history: string;
  readonly runFile: string;
  readonly secrets: string;
  readonly lock: string;
  /** Compiled sources: programs start faster and need less memory. */
  readonly compileCache: string;
}

export const projectRoot: string = fileURLToPath(
  new URL("../..", import.meta.url),
).replace(/\/$/, "");

export const BYTES_NEEDED = 128e6;

/** The paths under HEARTH_HOME, or as home-root.js defines. Creates nothing. */
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

/** The checkout that a release was created from. (Read without its schema: release.ts imports this file.) */
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
 * A file with the operator's settings, such as `gateway.local.yaml`: in `config/` of the checkout if it exists there, or if no
 * release runs; otherwise in the home, where `git clean` does not reach it.
 */
export function operatorFile(home: Home, name: string): string {
  const inCheckout = join(home.checkout, "config", name);
  return home.project === home.checkout || existsSync(inCheckout)
    ? inCheckout
    : join(home.root, "config", name);
}

/** Creates the directories (0700) and checks for disk space. */
export function createHome(home: Home): void {
  try {
    for (const path of [
      home.root,
      home.notes,
      home.journal,
      home.logs,
      home.handed,
    ]) {
      makeDirectory(path, 0o700);
    }
    // Never readable by others; searchable if Postgres runs as its own user (see postgres-place.ts).
    chmodSync(home.root, (statSync(home.root).mode & 0o711) | 0o700);
    const free = freeBytesOf(home.root);
    // An existing home starts on a full disk, too: data can be read, and alerts are sent.
    if (free < BYTES_NEEDED && !existsSync(home.history)) {
      throw new Failure(
        `the disk of ${home.root} has ${sizeWords(free)} left; Hearth needs ${sizeWords(BYTES_NEEDED)} to start: free some space, or set another directory with HEARTH_HOME.`,
      );
    }
  } catch (error) {
    throw error instanceof Failure
      ? error
      : new Failure(sentencesOf(error, home.root), error);
  }
}

/** Warnings about the location of the data. */
export function placeNotices(home: Home): readonly string[] {
  return earlierHomeRoot(home.checkout) === home.root
    ? [
        `all data is in the checkout (${home.root}), where \`git clean -fdx\` deletes it: run \`hearth down\`, then \`hearth home move\`.`,
      ]
    : [];
}

/** Whether nothing has been started here yet. */
export function isNewHome(home: Home): boolean {
  return ![home.runFile, home.notesIni, home.postgres].some((path) =>
    existsSync(path),
  );
}

/** A stable short name of a home: 16 hex digits. */
export function homeHash(home: Home): string {
  const path = existsSync(home.root) ? realpathSync(home.root) : home.root;
  return hash("sha256", path).slice(0, 16);
}

/** A path relative to the working directory, unless it is outside of it. */
export function asTyped(path: string): string {
  const short = relative(process.cwd(), path);
  return short.startsWith("..") || short === "" ? path : short;
}
