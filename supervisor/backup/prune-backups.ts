import type { KeepRule } from "../jobs/config.ts";
import { removeBackup } from "./backup-files.ts";
import { backupsToKeep } from "./backup-retention.ts";
import { listBackups } from "./manifest.ts";

/** Removes expired backups. Returns their number. */
export function pruneBackups(
  directory: string,
  keep: KeepRule,
  timeZone: string,
  now: number,
): number {
  const names = listBackups(directory);
  const kept = backupsToKeep(names, keep, timeZone, now);
  const gone = names.filter((name) => !kept.has(name));
  for (const name of gone) {
    removeBackup(directory, name);
  }
  return gone.length;
}
