import { readFileSync } from "node:fs";

/** The rest is for connections to other servers, and for files. */
const SHARE_OF_CLIENTS = 1 / 2;

/** Connections that clients may have, without a key or password too: half of the files that this process may have open. */
export function maxClientConnections(): number {
  return Math.floor(maxOpenFiles() * SHARE_OF_CLIENTS);
}

/** Infinity where the system does not say, as on macOS. */
function maxOpenFiles(): number {
  try {
    const [, soft] =
      /^Max open files\s+(\d+)/m.exec(
        readFileSync("/proc/self/limits", "utf8"),
      ) ?? [];
    return soft === undefined ? Infinity : Number(soft);
  } catch {
    return Infinity;
  }
}
