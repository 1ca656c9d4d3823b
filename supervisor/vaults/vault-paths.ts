import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf, Failure, sentencesOf } from "../../core/failure.ts";

/** A file of a vault that the file system cannot store, and why. */
export interface LeftOut {
  readonly path: string;
  readonly why: string;
}

/** Prefix of the paths of Obsidian's own files; other prefixes of this form are the plugin's. */
const HIDDEN_FILE = "i:";
const PLUGIN_DATA = /^(?:ps|ix):/;
const reasons: Readonly<Record<string, string>> = {
  ENAMETOOLONG: "the name is too long",
  EINVAL: "the name has characters that this file system does not allow",
  EILSEQ: "the name has characters that this file system does not allow",
  EEXIST: "the name differs from another only in upper and lower case",
  EISDIR: "a folder has the same name",
  ENOTDIR: "a file has the name of its folder",
};

/** The path of a note's file in the vault; undefined for the plugin's own documents. */
export function filePathOf(notePath: string): string | undefined {
  if (PLUGIN_DATA.test(notePath)) {
    return undefined;
  }
  return notePath.startsWith(HIDDEN_FILE)
    ? notePath.slice(HIDDEN_FILE.length)
    : notePath;
}

/** Why a path must not be written below a folder; undefined if it may. Members of the vault choose the paths: none may leave the folder. */
export function whyOutside(path: string): string | undefined {
  const isInside =
    !path.includes("\0") &&
    path.split(/[/\\]/).every((part) => !["", ".", ".."].includes(part));
  return isInside ? undefined : "the name leads out of the folder";
}

/** Creates the folder of a file. If one of its parts is a file, the error is ENOTDIR on every system. */
export function makeFolderOf(file: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true });
  } catch (error) {
    if (codeOf(error) !== "EEXIST") {
      throw error;
    }
    throw Object.assign(new Error("not a folder"), { code: "ENOTDIR" });
  }
}

/** Why the file system rejected a file. Throws a Failure for disk errors. */
export function whyNotHeld(error: unknown, path: string): string {
  const why = reasons[codeOf(error) ?? ""];
  if (why === undefined) {
    throw new Failure(sentencesOf(error, path));
  }
  return why;
}
