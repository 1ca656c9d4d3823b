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
 * Which of Postgres's data directories is in use: `postgres`, until a change of the major version put another beside it. A link
 * says so from then on, since a link is replaced in one step: at every moment one whole directory is in use.
 */

const LINK = "postgres-current";
const DATA_NAME = /^postgres(-\d+-\w+)?$/;

/** The name of a directory that a change to this major version makes. */
export function migratedName(major: string, at: number): string {
  const moment = new Date(at).toISOString().replace(/\D/g, "").slice(0, 14);
  return `postgres-${major}-${moment}`;
}

/** The data directory in use in `parent`, a home or what root keeps for one. */
export function dataIn(parent: string): string {
  return join(parent, linkedName(parent) ?? "postgres");
}

/** Whether a link names the data directory, so that it must be there. */
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

/** For a directory that takes the usual name. */
export function forgetLink(parent: string): void {
  rmSync(join(parent, LINK), { force: true });
}

/** The directories that earlier major versions left in `parent`; none is in use. */
export function earlierData(parent: string): readonly string[] {
  const inUse = linkedName(parent);
  if (inUse === undefined || !existsSync(join(parent, inUse))) {
    return [];
  }
  return readdirSync(parent)
    .filter((name) => DATA_NAME.test(name) && name !== inUse)
    .map((name) => join(parent, name));
}

/** Everything of Postgres's in `parent`: data directories, those that are being made, the link. */
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
