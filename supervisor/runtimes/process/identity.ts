import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync, readlinkSync, realpathSync } from "node:fs";

/** A process as it can be recognised again: ids are used anew, an id with its start time is not. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTime: string;
}

/**
 * When the process with this id started, in an opaque form that is equal only for the same process;
 * undefined when there is none, or when it has ended and only waits to be reaped.
 */
export function startTimeOf(pid: number): string | undefined {
  return process.platform === "linux" ? fromProc(pid) : fromPs(pid);
}

export function isAlive(identity: ProcessIdentity): boolean {
  return startTimeOf(identity.pid) === identity.startTime;
}

/** Waits until the process is gone: it is no child of ours, so nobody tells us. */
export async function untilGone(
  identity: ProcessIdentity,
  everyMs: number = 200,
): Promise<void> {
  while (isAlive(identity)) {
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

/** The ids of running programs of that name whose working directory this is. Each is asked of the system itself. */
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
        readOrNothing(`/proc/${pid}/comm`)?.trim() === program &&
        linkOrNothing(`/proc/${pid}/cwd`) === real,
    );
}

function processesByLsof(
  directory: string,
  program: string,
): readonly number[] {
  const lsof = spawnSync(
    "lsof",
    ["-a", "-d", "cwd", "-c", program, "-Fp", "--", directory],
    { encoding: "utf8" },
  );
  return [...(lsof.stdout ?? "").matchAll(/^p(\d+)$/gm)].map((match) =>
    Number(match[1]),
  );
}

/** Field 22 of /proc/<pid>/stat counts ticks since boot, so the boot's own id goes in front. */
function fromProc(pid: number): string | undefined {
  const stat = readOrNothing(`/proc/${pid}/stat`);
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
  knownBootId ??= (
    readOrNothing("/proc/sys/kernel/random/boot_id") ?? "boot"
  ).slice(0, 8);
  return knownBootId;
}

function fromPs(pid: number): string | undefined {
  const ps = spawnSync("ps", ["-o", "stat=,lstart=", "-p", String(pid)], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"] ?? "/bin:/usr/bin", LC_ALL: "C" },
  });
  const [state, ...started] = (ps.stdout ?? "").trim().split(/\s+/);
  return state === undefined || state === "" || state.startsWith("Z")
    ? undefined
    : started.join(" ");
}

function linkOrNothing(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

function readOrNothing(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
