import { readdirSync, readFileSync } from "node:fs";
import { homedir, hostname } from "node:os";
import { join, resolve } from "node:path";
import { isEngine } from "./processes.ts";
import type { Session } from "./session.ts";

/** The process that holds the lock of a stack with its state in files. */
interface Lock {
  readonly pid: number;
  /** For people: "a run of …". */
  readonly run: string;
  /** `ended`: only `cancel` releases this lock. */
  readonly holder: "running" | "ended" | "on another machine";
}

/** The stack's lock; null if there is none, or if the backend's locks cannot be read. */
export async function readLock({
  stack,
}: Pick<Session, "stack">): Promise<Lock | null> {
  const { url } = await stack.workspace.whoAmI();
  if (url?.startsWith("file://") !== true) {
    return null;
  }
  const directory = join(
    resolve(
      stack.workspace.workDir,
      url.slice("file://".length).replace(/\?.*$/, "").replace(/^~/, homedir()),
    ),
    ".pulumi/locks/organization/hearth",
    stack.name,
  );
  let files: readonly string[];
  try {
    files = readdirSync(directory).filter((name) => name.endsWith(".json"));
  } catch {
    return null;
  }
  const [file] = files;
  if (file === undefined) {
    return null;
  }
  const content = readFileSync(join(directory, file), "utf8");
  if (content === "") {
    const run = "a run that left an empty lock, such as after a power failure";
    return { pid: 0, run, holder: "ended" };
  }
  const { pid, hostname: host, timestamp } = JSON.parse(content) as LockFile;
  const run = `a run of ${timestamp} (process ${pid} on ${host})`;
  if (host !== hostname()) {
    return { pid, run, holder: "on another machine" };
  }
  return { pid, run, holder: (await isEngine(pid)) ? "running" : "ended" };
}

/** As the engine writes it. */
interface LockFile {
  readonly pid: number;
  readonly hostname: string;
  readonly timestamp: string;
}

const NEXT_STEP: Readonly<Record<Lock["holder"], string>> = {
  running: "wait for it to end, then run the same command again",
  ended:
    "that run was killed; run `npm run deploy -- cancel`, then the same command again",
  "on another machine":
    "wait for it to end; if it was killed, run `npm run deploy -- cancel`, then the same command again",
};

/**
 * Throws one sentence if another run holds the lock: the engine asks for it only after the checks, a backup, and changes of the state
 * that would be announced and then fail.
 */
export async function rejectLocked(
  session: Pick<Session, "stack">,
): Promise<void> {
  const lock = await readLock(session);
  if (lock !== null) {
    throw new Error(
      `the stack is locked by ${lock.run}; nothing was changed: ${NEXT_STEP[lock.holder]}.`,
    );
  }
}
