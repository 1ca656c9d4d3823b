import { execFileSync } from "node:child_process";

/** File descriptor limit of the notes server's container: 65536 by default, or the maximum that this computer allows. */
export const openFiles: number = Math.min(
  65_536,
  Number(execFileSync("sh", ["-c", "ulimit -Hn"], { encoding: "utf8" })) ||
    65_536,
);
