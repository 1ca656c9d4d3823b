import {
  existsSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { syncDirectory } from "../../core/durable-file.ts";
import { codeOf } from "../../core/failure.ts";

/**
 * The data directory of Postgres in use: `postgres`, until a change of the major version adds another one. From then on, a
 * symbolic link names it, because a link is replaced atomically.
 */

const LINK = "postgres-current";
const DATA_NAME = /^postgres(-\d+-\w+)?$/;

/** Name of the directory for a major version. */
export function migratedName(major: string, at: number): string {
  const moment = new Date(at).toISOString().replace(/\D/g, "").slice(0, 14);
  return `postgres-${major}-${moment}`;
}

/** The data directory in use in `parent`, a home or root's directory for one. */
export function dataIn(parent: string): string {
  return join(parent, linkedName(parent) ?? "postgres");
}

/** Whether a link names the data directory, so that it must exist. */
export function isLinked(parent: string): boolean {
  return linkedName(parent) !== undefined;
}

/** Uses another directory in `parent` from now on. */
export function useData(parent: string, name: string): void {
  const next = join(parent, `${LINK}.next`);
  rmSync(next, { force: true });
  symlinkSync(name, next);
  renameSync(next, join(parent, LINK));
  syncDirectory(parent);
}

/** For a directory with the default name. */
export function forgetLink(parent: string): void {
  rmSync(join(parent, LINK), { force: true });
}

/** Unused directories of earlier major versions in `parent`. */
export function earlierData(parent: string): readonly string[] {
  const inUse = linkedName(parent);
  if (inUse === undefined || !existsSync(join(parent, inUse))) {
    return [];
  }
  return readdirSync(parent)
    .filter((name) => DATA_NAME.test(name) && name !== inUse)
    .map((name) => join(parent, name));
}

/** All files of Postgres in `parent`: data directories, incomplete ones, the link. */
export function postgresPaths(parent: string): readonly string[] {
  if (!existsSync(parent)) {
    return [];
  }
  return readdirSync(parent)
    .filter((name) => /^postgres([-.]|$)/.test(name))
    .map((name) => join(parent, name));
}

function linkedName(parent: string): string | undefined {
  try {
    return readlinkSync(join(parent, LINK));
  } catch (error) {
    if (codeOf(error) === "ENOENT") {
      return undefined;
    }
    throw error;
  }
}
