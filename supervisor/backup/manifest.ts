import { hash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { DAY_MS } from "../../core/duration.ts";
import { listDirectory } from "../../core/list-directory.ts";
import { writeDurably } from "../../core/durable-file.ts";
import { Failure, codeOf } from "../../core/failure.ts";
import { recordOf } from "../../core/json.ts";

/**
 * A complete backup: a directory `backups/<kind>/<name>/` whose `manifest.json` names every other file in it. The name is the
 * time it was taken (`2026-11-21T030000Z`). It is created by a rename, so a directory with such a name is complete; incomplete
 * ones have another name (`.making-…`).
 */
export type Manifest = Readonly<z.output<typeof manifestSchema>>;
export type BackupFile = Manifest["files"][number];

export const MANIFEST_NAME = "manifest.json";
/** Clocks must not differ more: a date that is further ahead is wrong. */
const MAX_AHEAD_MS = DAY_MS;
const COMPLETE_NAME = /^\d{4}-\d\d-\d\dT\d{6}Z$/;

const manifestSchema = z.looseObject({
  format: z.literal(1),
  kind: z.enum(["postgres", "notes"]),
  /** Milliseconds since 1970: the time of the snapshot. */
  takenAt: z.number().int(),
  files: z.array(
    z
      .strictObject({
        name: z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/),
        bytes: z.number().int().nonnegative(),
        /** SHA-256 of the stored file, lower-case hex. */
        sha256: z.string().regex(/^[0-9a-f]{64}$/),
      })
      .readonly(),
  ),
});

/** The name of a backup of the time `at` (milliseconds since 1970). */
export function backupName(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replaceAll(":", "")}Z`;
}

/** The time of a name; undefined for other texts. */
export function momentOf(name: string): number | undefined {
  if (!COMPLETE_NAME.test(name)) {
    return undefined;
  }
  const [date, time = ""] = name.slice(0, -1).split("T");
  const at = Date.parse(
    `${date}T${time.slice(0, 2)}:${time.slice(2, 4)}:${time.slice(4)}Z`,
  );
  return Number.isNaN(at) ? undefined : at;
}

/** Names of the complete backups in `backups/<kind>/`, latest date first; none if the directory does not exist. */
export function listBackups(directory: string): readonly string[] {
  return listDirectory(directory)
    .filter(
      (name) =>
        momentOf(name) !== undefined &&
        // A file of such a name is none of ours.
        statSync(join(directory, name), {
          throwIfNoEntry: false,
        })?.isDirectory() === true,
    )
    .toSorted()
    .toReversed();
}

/** The newest backup in `backups/<kind>/`, as ranked by `rankBackups`; undefined if there is none. */
export function newestBackup(
  directory: string,
  now: number,
): string | undefined {
  return rankBackups(listBackups(directory), now)[0];
}

/** Sorts names of backups by `compareAges`. */
export function rankBackups(
  names: readonly string[],
  now: number,
): readonly string[] {
  const compare = compareAges(now);
  return names.toSorted((a, b) => compare(momentOf(a) ?? 0, momentOf(b) ?? 0));
}

/** The backup of this name, by default the newest, as ranked by `rankBackups`; undefined if there is none. */
export function findBackup<Backup extends { readonly name: string }>(
  backups: readonly Backup[],
  name: string | undefined,
  now: number,
): Backup | undefined {
  const names = backups.map((backup) => backup.name);
  const wanted = name ?? rankBackups(names, now)[0];
  return backups.find((backup) => backup.name === wanted);
}

/**
 * Compares dates (milliseconds since 1970): the latest comes first, and those of a wrong clock last. A backup taken while the
 * clock was a year ahead would otherwise be the newest for a year.
 */
export function compareAges(now: number): (a: number, b: number) => number {
  return (a, b) => Number(isAhead(a, now)) - Number(isAhead(b, now)) || b - a;
}

/** Whether a date must be that of a wrong clock. */
export function isAhead(at: number, now: number): boolean {
  return at > now + MAX_AHEAD_MS;
}

/** Writes the manifest of an incomplete backup, with its own checksum. */
export function writeManifest(directory: string, manifest: Manifest): void {
  const checksum = checksumOf(manifest);
  writeDurably(
    join(directory, MANIFEST_NAME),
    `${JSON.stringify({ ...manifest, checksum }, null, 1)}\n`,
  );
}

/** The manifest of a backup. Throws a Failure if it is missing, altered, or of a newer format. */
export function readManifest(backup: string): Manifest {
  const path = join(backup, MANIFEST_NAME);
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new Failure(
      `cannot read ${path} (${codeOf(error) ?? "invalid JSON"}): this backup is unusable; take another one.`,
    );
  }
  const { checksum, ...rest } = recordOf(content);
  if (checksum !== checksumOf(rest)) {
    throw new Failure(
      `${path} has changed since it was written: this backup is unusable; take another one.`,
    );
  }
  const parsed = manifestSchema.safeParse(content);
  if (!parsed.success) {
    throw new Failure(
      `${path} was written by another version of Hearth: upgrade Hearth, or use another backup.`,
    );
  }
  return parsed.data;
}

function checksumOf(manifest: Readonly<Record<string, unknown>>): string {
  return hash("sha256", JSON.stringify(manifest));
}
