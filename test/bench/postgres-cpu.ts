import { readFileSync } from "node:fs";
import { query, type Pool } from "../../gateway/database/pool.ts";

/** Linux reports processor time in hundredths of a second, regardless of the kernel's tick. */
const TICK_MS = 10;

/** Fields of /proc/<pid>/stat from the state on; the name before it may contain spaces. */
function statOf(pid: number): readonly string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/**
 * Returns a function that reads the processor time of all processes of the pool's Postgres in ms; null without /proc or if the
 * server is on another machine.
 */
export async function postgresCpu(pool: Pool): Promise<(() => number) | null> {
  if (process.platform !== "linux") {
    return null;
  }
  const [own] = await query<{ pid: number }>(
    pool,
    "SELECT pg_backend_pid() AS pid",
  );
  const postmaster = Number(statOf(own?.pid ?? 0)[1]);
  // The time of the process and of its ended children, such as parallel workers.
  const ended = () => sum(statOf(postmaster).slice(11, 15));
  const running = () =>
    readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, "utf8")
      .trim()
      .split(" ")
      .reduce((all, pid) => all + timeOf(Number(pid)), 0);
  return () => TICK_MS * (ended() + running());
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
