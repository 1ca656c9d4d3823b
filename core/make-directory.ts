import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf } from "./failure.ts";

/**
 * Creates a directory and those above it, with the same mode, unless it exists. For paths that a person names: Node's own
 * `recursive` never returns where the system reports ENOENT below an existing directory, as Linux does below /proc.
 */
export function makeDirectory(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    const parent = dirname(path);
    if (codeOf(error) === "ENOENT" && !existsSync(parent)) {
      makeDirectory(parent, mode);
      makeDirectory(path, mode);
    } else if (!isDirectory(path)) {
      throw error;
    }
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
