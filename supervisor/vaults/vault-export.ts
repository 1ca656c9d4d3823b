import { readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Failure, sentencesOf } from "../../core/failure.ts";
import { makeDirectory } from "../../core/make-directory.ts";
import type { HistorySource } from "./history-source.ts";
import type { NoteCipher, NoteDocument } from "./note-cipher.ts";
import { contentOf, MissingChunk, readVaultAt } from "./vault-past.ts";
import {
  filePathOf,
  makeFolderOf,
  whyNotHeld,
  whyOutside,
  type LeftOut,
} from "./vault-paths.ts";

export interface Exported {
  readonly at: number;
  readonly files: number;
  /** Files that are incomplete on the server or that the file system could not store, and why. */
  readonly left: readonly LeftOut[];
}

/** Writes a vault as of `at` into a new or empty folder, byte for byte as on a device. */
export async function exportVault(
  source: HistorySource,
  cipher: NoteCipher,
  directory: string,
  at: number,
): Promise<Exported> {
  const past = await readVaultAt(source, cipher, at);
  claim(directory);
  const left: LeftOut[] = [];
  let files = 0;
  const write = async (
    note: NoteDocument,
    target: string,
  ): Promise<string | undefined> => {
    try {
      return place(target, await contentOf(source, cipher, note), note.mtime);
    } catch (error) {
      if (error instanceof MissingChunk) {
        return "part of it is missing on the server";
      }
      throw error;
    }
  };
  for (const { note } of past.notes.values()) {
    const path = filePathOf(note.path);
    if (note.deleted || path === undefined) {
      continue;
    }
    const why = whyOutside(path) ?? (await write(note, join(directory, path)));
    if (why === undefined) {
      files += 1;
    } else {
      left.push({ path, why });
    }
  }
  return { at: past.at, files, left };
}

function claim(directory: string): void {
  try {
    makeDirectory(directory, 0o700);
    if (readdirSync(directory).length === 0) {
      return;
    }
  } catch (error) {
    throw new Failure(sentencesOf(error, directory));
  }
  throw new Failure(
    `${directory} is not empty: choose a new folder, so that no file is overwritten.`,
  );
}

/** Why the file could not be written; undefined if it was. Throws a Failure for disk errors. */
function place(
  path: string,
  content: Buffer,
  mtime: number,
): string | undefined {
  try {
    makeFolderOf(path);
    writeFileSync(path, content, { flag: "wx" });
    utimesSync(path, new Date(), new Date(mtime));
    return undefined;
  } catch (error) {
    return whyNotHeld(error, path);
  }
}
