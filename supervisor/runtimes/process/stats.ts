import { readFileSync } from "node:fs";
import { executeSync } from "../../../core/execute.ts";
import type { ServiceStats } from "../runtime.ts";

/** Linux reports CPU time in hundredths of a second, whatever the tick of the kernel (USER_HZ, proc(5)). */
const TICKS_PER_SECOND = 100;

/** Resident memory and CPU time of a process, and of its children if asked for; undefined if it has ended. */
export function statsOf(
  pid: number,
  withChildren = false,
): ServiceStats | undefined {
  const own = readStats(pid, withChildren);
  return own === undefined || !withChildren
    ? own
    : childrenOf(pid)
        .flatMap((child) => readStats(child) ?? [])
        .reduce(sumOf, own);
}

function readStats(pid: number, withEnded = false): ServiceStats | undefined {
  try {
    return process.platform === "linux"
      ? fromProc(pid, withEnded)
      : fromPs(pid);
  } catch {
    return undefined;
  }
}

function sumOf(one: ServiceStats, other: ServiceStats): ServiceStats {
  return {
    memoryBytes: one.memoryBytes + other.memoryBytes,
    cpuSeconds: one.cpuSeconds + other.cpuSeconds,
  };
}

function childrenOf(pid: number): readonly number[] {
  try {
    const text =
      process.platform === "linux"
        ? readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
        : executeSync("pgrep", ["-P", String(pid)]).stdout;
    return text.split(/\s+/).filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** `withEnded`: and the CPU time of children that have ended, which must not go backwards. */
function fromProc(pid: number, withEnded: boolean): ServiceStats | undefined {
  const rss = /^VmRSS:\s+(\d+) kB$/m.exec(
    readFileSync(`/proc/${pid}/status`, "utf8"),
  )?.[1];
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return rss === undefined
    ? undefined
    : {
        memoryBytes: Number(rss) * 1024,
        cpuSeconds:
          fields
            .slice(11, withEnded ? 15 : 13)
            .reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND,
      };
}

function fromPs(pid: number): ServiceStats | undefined {
  const ps = executeSync("ps", ["-o", "rss=,time=", "-p", String(pid)]);
  const [rss, time] = ps.stdout.trim().split(/\s+/);
  if (rss === undefined || time === undefined) {
    return undefined;
  }
  const cpuSeconds = time
    .split(/[:-]/)
    .reduce((sum, part) => sum * 60 + Number(part), 0);
  return { memoryBytes: Number(rss) * 1024, cpuSeconds };
}
