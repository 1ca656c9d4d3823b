import { readFileSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { askSync, EXHAUSTED } from "../../../core/execute.ts";
import { codeOf, Failure } from "../../../core/failure.ts";

/** Identifies a process: ids are reused, an id with its start time is not. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTime: string;
}

/**
 * The start time of the process with this id, in an opaque form that is equal only for the same process; undefined if there
 * is none, or if it has ended and is not reaped yet. Throws a Failure if this process is out of file descriptors or memory.
 */
export function startTimeOf(pid: number): string | undefined {
  return process.platform === "linux" ? fromProc(pid) : fromPs(pid);
}

/** As long as its start time cannot be read, its id decides: a service that counts as ended is started a second time. */
export function isAlive({ pid, startTime }: ProcessIdentity): boolean {
  let found: string | undefined;
  try {
    found = startTimeOf(pid);
  } catch {
    return isIdInUse(pid);
  }
  return found === startTime;
}

function isIdInUse(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) !== "ESRCH";
  }
}

/** Polls until a process has ended; it may not be a child of this one. */
export async function untilGone(
  identity: ProcessIdentity,
  everyMs: number = 200,
): Promise<void> {
  while (isAlive(identity)) {
    await sleep(everyMs);
  }
}

/** Process ids of running programs of this name in this working directory, from /proc or lsof. */
export function processesIn(
  directory: string,
  program: string,
): readonly number[] {
  return process.platform === "linux"
    ? processesByProc(directory, program)
    : processesByLsof(directory, program);
}

function processesByProc(
  directory: string,
  program: string,
): readonly number[] {
  const real = realpathSync(directory);
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter(
      (pid) =>
        tryRead(`/proc/${pid}/comm`)?.trim() === program &&
        tryReadLink(`/proc/${pid}/cwd`) === real,
    );
}

function processesByLsof(
  directory: string,
  program: string,
): readonly number[] {
  const args = ["-a", "-d", "cwd", "-c", program, "-Fp", "--", directory];
  const { stdout } = askSync("lsof", args);
  return [...stdout.matchAll(/^p(\d+)$/gm)].map((match) => Number(match[1]));
}

/** Field 22 of /proc/<pid>/stat counts ticks since boot, so the id of the boot is prepended. */
function fromProc(pid: number): string | undefined {
  const stat = tryRead(`/proc/${pid}/stat`);
  if (stat === undefined) {
    return undefined;
  }
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, startTicks] = [fields[0], fields[19]];
  if (startTicks === undefined || state === "Z" || state === "X") {
    return undefined;
  }
  return `${bootId()}-${startTicks}`;
}

let knownBootId: string | undefined;
function bootId(): string {
  knownBootId ??= (tryRead("/proc/sys/kernel/random/boot_id") ?? "boot").slice(
    0,
    8,
  );
  return knownBootId;
}

function fromPs(pid: number): string | undefined {
  const ps = askSync("ps", ["-o", "stat=,lstart=", "-p", String(pid)], {
    env: { PATH: process.env["PATH"] ?? "/bin:/usr/bin", LC_ALL: "C" },
  });
  const [state, ...started] = ps.stdout.trim().split(/\s+/);
  return state === undefined || state === "" || state.startsWith("Z")
    ? undefined
    : started.join(" ");
}

function tryReadLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

function tryRead(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const advice = EXHAUSTED[codeOf(error) ?? ""];
    if (advice !== undefined) {
      throw new Failure(
        `cannot read ${path} (${codeOf(error)}): ${advice}, then run the command again.`,
      );
    }
    return undefined;
  }
}
