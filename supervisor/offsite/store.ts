import { createHmac } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { findBackup, momentOf, rankBackups } from "../backup/manifest.ts";
import { Failure } from "../../core/failure.ts";
import { decryptText } from "./age.ts";
import type { OffsitePlace } from "./settings.ts";

export const OFFSITE_KINDS = ["postgres", "notes"] as const;
export type OffsiteKind = (typeof OFFSITE_KINDS)[number];

/**
 * An installation's folder at the target: `objects/<2 hex>/<64 hex>.age`, one for each distinct file of all backups, and
 * `backups/<kind>/<name>.age`, which names the files of one backup and is uploaded last. All of it is encrypted with age; an
 * object is named after a hash of its content keyed with the identity: names reveal nothing, and equal files are stored once.
 */
const entrySchema = z.object({
  format: z.literal(1),
  kind: z.enum(OFFSITE_KINDS),
  name: z.string().refine((name) => momentOf(name) !== undefined),
  /** The backup's manifest.json, unchanged. */
  manifest: z.string(),
  files: z.array(
    z.object({
      name: z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/),
      object: z.string().regex(/^objects\/[0-9a-f]{2}\/[0-9a-f]{64}\.age$/),
      bytes: z.number().int().nonnegative(),
    }),
  ),
  /** What a new machine needs besides the backup. */
  settings: z
    .object({
      saltKey: z.string().optional(),
      masterKey: z.string().optional(),
      /** The operator's configuration by file name. */
      files: z.record(z.string().regex(/^[a-z][a-z.-]*\.yaml$/), z.string()),
    })
    .optional(),
});
export type OffsiteEntry = Readonly<z.output<typeof entrySchema>>;
export type OffsiteExtra = OffsiteEntry["settings"];

export interface OffsiteBackup {
  readonly kind: OffsiteKind;
  readonly name: string;
}

type Progress = (text: string, done?: number) => void;
export interface OffsiteWork {
  readonly signal: AbortSignal;
  readonly progress: Progress;
}

/** Encrypted before each upload: an interruption loses at most this much work. */
export const PART_BYTES = 512 * 1024 * 1024;

/** The backups in the list of a folder, latest date first. */
export function backupsIn(
  files: ReadonlyMap<string, number>,
): readonly OffsiteBackup[] {
  return [...files.keys()]
    .flatMap((path): readonly OffsiteBackup[] => {
      const [, kind, name = ""] =
        /^backups\/(postgres|notes)\/([^/]+)\.age$/.exec(path) ?? [];
      return kind === undefined || momentOf(name) === undefined
        ? []
        : [{ kind: kind as OffsiteKind, name }];
    })
    .toSorted((a, b) => (a.name < b.name ? 1 : -1));
}

export function entryPath({ kind, name }: OffsiteBackup): string {
  return `backups/${kind}/${name}.age`;
}

/** Reads the entries of backups at the target. Throws a Failure if one is unreadable. */
export async function readEntries(
  { remote, staging, settings }: OffsitePlace,
  backups: readonly OffsiteBackup[],
  signal: AbortSignal,
): Promise<readonly OffsiteEntry[]> {
  clear(staging);
  try {
    await remote.download(backups.map(entryPath), staging, signal);
    const entries: OffsiteEntry[] = [];
    for (const backup of backups) {
      const path = join(staging, entryPath(backup));
      if (!existsSync(path)) {
        throw gone(backup);
      }
      const text = await decryptText(settings.identity, readFileSync(path));
      const entry = entrySchema.safeParse(JSON.parse(text));
      // An encrypted entry may have been copied to another name.
      if (
        !entry.success ||
        entry.data.kind !== backup.kind ||
        entry.data.name !== backup.name
      ) {
        throw gone(backup);
      }
      entries.push(entry.data);
    }
    return entries;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/** A backup of a kind at the target; defaults to the newest. Throws a Failure that lists the available ones. */
export async function chooseOffsite(
  place: OffsitePlace,
  kind: OffsiteKind,
  name: string | undefined,
  now: number,
  signal: AbortSignal,
): Promise<OffsiteBackup> {
  const { remote, folder, settings } = place;
  const all = backupsIn(await remote.list(signal));
  const ofKind = all.filter((each) => each.kind === kind);
  const chosen = findBackup(ofKind, name, now);
  if (chosen !== undefined) {
    return chosen;
  }
  if (all.length > 0) {
    const names = rankBackups(
      ofKind.map((each) => each.name),
      now,
    );
    throw new Failure(
      name === undefined
        ? `the target has no backup of ${kind}: run \`hearth offsite list\`.`
        : `the target has no backup ${name} of ${kind}; it has ${names.join(", ") || "none"}.`,
    );
  }
  const others = (await remote.siblings(signal)).filter(
    (each) => /^hearth-[0-9a-f]{8}$/.test(each) && each !== folder,
  );
  throw new Failure(
    others.length === 0
      ? `${settings.target} has no backup yet: run \`hearth offsite run\`; on a new machine, check the path of the target.`
      : `${settings.target} has no backup for this identity (${folder}), only for others (${others.join(", ")}): use the identity that was printed when off-site backups were set up.`,
  );
}

export function objectOf(identity: string, sha256: string): string {
  const name = createHmac("sha256", identity)
    .update(`hearth object ${sha256}`)
    .digest("hex");
  return `objects/${name.slice(0, 2)}/${name}.age`;
}

export function clear(directory: string): void {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
}

export function gone({ kind, name }: OffsiteBackup): Failure {
  return new Failure(
    `cannot read the backup ${name} of ${kind} at the target: run \`hearth offsite list\` and fetch another one.`,
  );
}
