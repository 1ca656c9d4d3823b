import { readFileSync } from "node:fs";
import { MINUTE_MS } from "./duration.ts";

/** The rest is for connections to other servers, and for files. */
const SHARE_OF_CLIENTS = 1 / 2;
const LOG_EVERY_MS = MINUTE_MS;

interface ErrorLog {
  error(fields: object, message: string): void;
}

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

/** Returns what logs, at most once a minute, that a connection was closed because there are `maxConnections`. */
export function rejectedConnectionLogger(
  log: ErrorLog,
  maxConnections: number,
): () => void {
  let loggedAt = -Infinity;
  return () => {
    const now = performance.now();
    if (now - loggedAt >= LOG_EVERY_MS) {
      loggedAt = now;
      log.error(
        { maxConnections },
        "too many connections for the limit of open files; further ones are closed: raise the limit (`ulimit -n 65536`; LimitNOFILE=65536 of systemd; `--ulimit nofile=65536` of Docker) and restart",
      );
    }
  };
}
