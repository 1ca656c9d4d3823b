import { writeFileSync } from "node:fs";
import { codeOf, Failure, isFullDisk, sentencesOf } from "../core/failure.ts";

/** Writes a file that the command line names, readable by its owner only. */
export function writeOutput(file: string, content: string | Buffer): void {
  try {
    writeFileSync(file, content, { mode: 0o600 });
  } catch (error) {
    throw new Failure(
      isFullDisk(error)
        ? sentencesOf(error, file)
        : `cannot write ${file} (${codeOf(error)}): name a file in a directory that exists and is writable.`,
    );
  }
}
