import { existsSync, rmSync } from "node:fs";
import { lockFile, type FileLock } from "../../core/file-lock.ts";
import { isDamage, refuseDirectory } from "../history/sqlite-file.ts";

/** Locks a home for one supervisor; undefined if another supervisor has the lock. */
export function lockHome(path: string): FileLock | undefined {
  try {
    refuseDirectory(path);
    return lockFile(path);
  } catch (error) {
    if (!isDamage(error)) {
      throw error;
    }
    // The file has no content: a new one serves the same purpose.
    rmSync(path, { force: true, recursive: true });
    return lockFile(path);
  }
}

/** Whether a supervisor has the lock. */
export function isLocked(path: string): boolean {
  if (!existsSync(path)) {
    return false;
  }
  const lock = lockHome(path);
  lock?.release();
  return lock === undefined;
}

/** For a locked home whose supervisor is not in run.json. */
export function startingOrStopping(root: string): string {
  return `another \`hearth up\` is starting or stopping on ${root}: wait for it, then try again.`;
}
