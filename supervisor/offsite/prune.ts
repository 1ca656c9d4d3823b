import { backupsToKeep } from "../backup/backup-retention.ts";
import { beyondCap, bytesOf, type MeasuredBackup } from "../backup/size-cap.ts";
import { sizeWords } from "../../core/size.ts";
import { Failure } from "../../core/failure.ts";
import type { KeepRule } from "../jobs/config.ts";
import type { OffsitePlace } from "./settings.ts";
import {
  backupsIn,
  entryPath,
  OFFSITE_KINDS,
  readEntries,
  type OffsiteKind,
} from "./store.ts";

interface PruneRules {
  readonly keep: Readonly<Record<OffsiteKind, KeepRule>>;
  readonly timeZone: string;
  /** Maximum bytes of all backups. */
  readonly most: number;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/**
 * Removes expired backups from the target, by the same rules as on this machine, and the oldest beyond `most` bytes. Removes
 * nothing if a remaining backup is unreadable, because its files would be unknown. Returns how many backups were removed, and
 * what remains.
 */
export async function pruneOffsite(
  place: OffsitePlace,
  { keep, timeZone, most, now }: PruneRules,
  signal: AbortSignal,
): Promise<{ readonly removed: number; readonly bytes: number }> {
  const files = await place.remote.list(signal);
  const backups = backupsIn(files);
  const wanted = OFFSITE_KINDS.flatMap((kind) => {
    const ofKind = backups.filter((each) => each.kind === kind);
    const names = ofKind.map(({ name }) => name);
    const kept = backupsToKeep(names, keep[kind], timeZone, now);
    return ofKind.filter(({ name }) => kept.has(name));
  });
  const measured = (await readEntries(place, wanted, signal)).map(
    (entry): MeasuredBackup => ({
      kind: entry.kind,
      name: entry.name,
      parts: [entryPath(entry), ...entry.files.map(({ object }) => object)].map(
        (path) => ({ key: path, bytes: files.get(path) ?? 0 }),
      ),
    }),
  );
  const beyond = beyondCap(measured, most, 0, now) ?? [];
  const left = measured.filter((each) => !beyond.includes(each));
  const needed = new Set(
    left.flatMap(({ parts }) => parts.map(({ key }) => key)),
  );
  const needless = [...files.keys()].filter((path) => !needed.has(path));
  // Entries first: an interruption must not leave a backup without its files.
  for (const part of ["backups/", "objects/"]) {
    await place.remote.remove(
      needless.filter((path) => path.startsWith(part)),
      signal,
    );
  }
  const bytes = bytesOf(left);
  if (bytes > most) {
    throw new Failure(
      `backups at ${place.settings.target} take ${sizeWords(bytes)} although only those of the last two days are left, with a limit of ${sizeWords(most)}: raise \`backups: at_most\`.`,
    );
  }
  return { removed: backups.length - left.length, bytes };
}
