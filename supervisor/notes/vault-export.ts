import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Failure, codeOf, sentencesOf } from "../failure.ts";
import type { HistorySource } from "./history-source.ts";
import type { NoteCipher } from "./note-cipher.ts";
import { contentOf, readVaultAt } from "./vault-past.ts";

export type Exported = {
  readonly at: number;
  readonly files: number;
  /** What the file system could not hold, and why. */
  readonly left: readonly { readonly path: string; readonly why: string }[];
};

/** Obsidian's own files are stored under their path behind this; what else has such a mark is the plugin's. */
const hiddenFile = "i:";
const pluginData = /^(?:ps|ix):/;
const reasons: Readonly<Record<string, string>> = {
  ENAMETOOLONG: "the name is too long",
  EINVAL: "the name has characters that this file system does not allow",
  EILSEQ: "the name has characters that this file system does not allow",
  EEXIST: "the name differs from another only in upper and lower case",
  EISDIR: "a folder has the same name",
  ENOTDIR: "a file has the name of its folder",
};

/** Writes a vault as it was at `at` into a folder that is new or empty, byte for byte as on a device. */
export async function exportVault(
  source: HistorySource,
  cipher: NoteCipher,
  directory: string,
  at: number,
): Promise<Exported> {
  const past = await readVaultAt(source, cipher, at);
  claim(directory);
  const left: { path: string; why: string }[] = [];
  let files = 0;
  for (const { note } of past.notes.values()) {
    if (note.deleted || pluginData.test(note.path)) continue;
    const path = note.path.startsWith(hiddenFile)
      ? note.path.slice(hiddenFile.length)
      : note.path;
    const why = isInside(path)
      ? place(
          join(directory, path),
          await contentOf(source, cipher, note),
          note.mtime,
        )
      : "the name leads out of the folder";
    if (why === undefined) files += 1;
    else left.push({ path, why });
  }
  return { at: past.at, files, left };
}

function claim(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    if (readdirSync(directory).length === 0) return;
  } catch (error) {
    throw new Failure(sentencesOf(error, directory));
  }
  throw new Failure(
    `${directory} is not empty: name a new folder, so that nothing in it is overwritten.`,
  );
}

/** A member of the vault writes the paths: none may leave the folder. */
function isInside(path: string): boolean {
  return (
    !path.includes("\0") &&
    path.split(/[/\\]/).every((part) => !["", ".", ".."].includes(part))
  );
}

/** Why the file could not be written; undefined when it was. Throws a Failure for what is wrong with the disk. */
function place(
  path: string,
  content: Buffer,
  mtime: number,
): string | undefined {
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content, { flag: "wx" });
    utimesSync(path, new Date(), new Date(mtime));
    return undefined;
  } catch (error) {
    const why = reasons[codeOf(error) ?? ""];
    if (why === undefined) throw new Failure(sentencesOf(error, path));
    return why;
  }
}
