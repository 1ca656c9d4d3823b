import { homedir } from "node:os";
import { join } from "node:path";

/** What is kept between runs, outside the clone: scripts/toolchain.sh installs into `toolchain` below it. */
export const USER_CACHE: string = join(
  process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"),
  "hearth",
);
