import fs from "node:fs";
import path from "node:path";
import { lockFile, type FileLock } from "../../core/file-lock.ts";

/** Locks the journal's directory for this process; throws a sentence naming the process that has it. */
export function lockJournal(directory: string): FileLock {
  const lock = lockFile(path.join(directory, "lock"));
  const ownerFile = path.join(directory, "owner");
  if (lock === undefined) {
    throw new Error(
      `The journal ${directory} is in use by ${describeOwner(ownerFile)}: stop that gateway, or set HEARTH_JOURNAL_DIR to another directory.`,
    );
  }
  // Only for the message above; the lock works on a full disk too.
  try {
    fs.writeFileSync(ownerFile, `${process.pid}\n`);
  } catch {
    // The message then names "another process".
  }
  return lock;
}

function describeOwner(ownerFile: string): string {
  try {
    const pid = fs.readFileSync(ownerFile, "utf8").trim();
    return pid === "" ? "another process" : `process ${pid}`;
  } catch {
    return "another process";
  }
}
