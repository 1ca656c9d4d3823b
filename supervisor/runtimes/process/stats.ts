import { readFileSync } from "node:fs";
import { executeSync } from "../../../core/execute.ts";
import type { ServiceStats } from "../runtime.ts";

/** Linux reports CPU time in hundredths of a second, whatever the tick of the kernel (USER_HZ, proc(5)). */
const TICKS_PER_SECOND = 100;

/** Resident memory and CPU time of a process; undefined if it has ended. */
export function statsOf(pid: number): ServiceStats | undefined {
  try {
    return process.platform === "linux" ? fromProc(pid) : fromPs(pid);
  } catch {
    return undefined;
  }
}

function fromProc(pid: number): ServiceStats | undefined {
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
          (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND,
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
