import { readFileSync } from "node:fs";

/** Linux reports processor time in hundredths of a second, regardless of the kernel's tick. */
const TICK_MS = 10;

/** Fields of /proc/<pid>/stat from the state on; the name before it may contain spaces. */
export function statOf(pid: number): readonly string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** Processor time in ms of a process and of its children, running or ended; needs /proc. */
export function processCpu(pid: number): number {
  const running = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
    .trim()
    .split(" ")
    .reduce((all, child) => all + timeOf(Number(child)), 0);
  return TICK_MS * (sum(statOf(pid).slice(11, 15)) + running);
}

function timeOf(pid: number): number {
  try {
    return sum(statOf(pid).slice(11, 13));
  } catch {
    // The process has ended; its time is included in that of its parent.
    return 0;
  }
}

function sum(fields: readonly string[]): number {
  return fields.reduce((all, field) => all + Number(field), 0);
}
