import { execFileSync } from "node:child_process";

/** What the notes server's container may open: 65536 as by default, or the most that this computer allows. */
export const openFiles: number = Math.min(
  65_536,
  Number(execFileSync("sh", ["-c", "ulimit -Hn"], { encoding: "utf8" })) ||
    65_536,
);
