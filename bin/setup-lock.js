// Plain JavaScript for any Node: it runs before anything is installed.
import { spawnSync } from "node:child_process";
import {
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";

const POLL_MS = 200;
const ANNOUNCE_AFTER_MS = 1000;

/**
 * Does `work` under an exclusive lock: concurrent set-ups would delete each other's files.
 * The lock is a symbolic link whose target names its holder: it is created atomically, so one that does not name a
 * live process is stale and is taken over. Throws if a live holder keeps it for longer than `waitMs`.
 */
export function withSetupLock(lock, work, { say = () => {}, waitMs }) {
  const startedAt = performance.now();
  let announced = false;
  while (!tryCreate(lock)) {
    const text = readHolder(lock);
    const pid = livingHolder(text);
    const waited = performance.now() - startedAt;
    if (pid === undefined) {
      removeStale(lock, text);
      continue;
    }
    if (waited > waitMs) {
      throw new Error(
        `another command (pid ${pid}) has been installing packages for ${Math.round(waitMs / 60_000)} minutes: wait for it or end it, then run the command again.`,
      );
    }
    if (!announced && waited > ANNOUNCE_AFTER_MS) {
      announced = true;
      say(`another command (pid ${pid}) is installing packages; waiting …`);
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_MS);
  }
  const release = () => rmSync(lock, { force: true });
  process.once("exit", release);
  try {
    work();
  } finally {
    release();
    process.off("exit", release);
  }
}

function tryCreate(lock) {
  try {
    symlinkSync(`${process.pid} ${startTimeOf(process.pid)}`, lock);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") {
      return false;
    }
    throw new Error(
      `cannot write ${lock} (${error.message}): run the command as a user who may write there.`,
    );
  }
}

/** Target of the lock; undefined if there is none, or if it is a file, as created by earlier versions. */
function readHolder(lock) {
  try {
    return readlinkSync(lock);
  } catch {
    return undefined;
  }
}

/** Ids are reused, especially after a reboot; an id with its start time is unique. */
function livingHolder(text) {
  const [pid, ...started] = (text ?? "").split(" ");
  return /^\d+$/.test(pid) && startTimeOf(Number(pid)) === started.join(" ")
    ? Number(pid)
    : undefined;
}

/** Removes only the lock that was read: another process may have taken it over meanwhile. */
function removeStale(lock, text) {
  const aside = `${lock}.${process.pid}`;
  try {
    renameSync(lock, aside);
  } catch (error) {
    if (error.code === "ENOENT") {
      return;
    }
    throw new Error(
      `cannot remove ${lock} (${error.message}): delete it, then run the command again.`,
    );
  }
  const moved = readHolder(aside);
  rmSync(aside, { force: true, recursive: true });
  if (moved === undefined || moved === text) {
    return;
  }
  try {
    symlinkSync(moved, lock);
  } catch {
    // A third process holds it already.
  }
}

/** Start time of a process, as text that is equal only for the same process; undefined if there is none. */
function startTimeOf(pid) {
  if (process.platform !== "linux") {
    const { stdout } = spawnSync("ps", ["-o", "lstart=", "-p", String(pid)], {
      encoding: "utf8",
    });
    return stdout?.trim() || undefined;
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8");
    // The name in parentheses may contain spaces; the start time is field 22, in ticks since boot.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // A zombie has ended.
    return fields[0] === "Z" ? undefined : `${boot.trim()}/${fields[19]}`;
  } catch {
    return undefined;
  }
}
