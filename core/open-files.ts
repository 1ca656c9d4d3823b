import { readFileSync } from "node:fs";

/** How many files and connections this process may have open; Infinity where the system does not say, as on macOS. */
export function maxOpenFiles(): number {
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
