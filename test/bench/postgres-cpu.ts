import { query, type Client, type Pool } from "../../gateway/database/pool.ts";
import { processCpu, statOf } from "./process-cpu.ts";

/**
 * Returns a function that reads the processor time of all processes of a Postgres in ms; null without /proc or if the
 * server is on another machine.
 */
export async function postgresCpu(
  pool: Pool | Client,
): Promise<(() => number) | null> {
  if (process.platform !== "linux") {
    return null;
  }
  const [own] = await query<{ pid: number }>(
    pool,
    "SELECT pg_backend_pid() AS pid",
  );
  const postmaster = Number(statOf(own?.pid ?? 0)[1]);
  return () => processCpu(postmaster);
}
