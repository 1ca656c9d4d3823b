import { readdirSync } from "node:fs";
import { codeOf } from "./failure.ts";

/** Names in a directory; none if it does not exist. */
export function listDirectory(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (codeOf(error) === "ENOENT") {
      return [];
    }
    throw error;
  }
}
