import {
  mkdirSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { syncDirectory, syncTree } from "../../core/durable-file.ts";
import { Failure, sentencesOf } from "../../core/failure.ts";
import { makeDirectory } from "../../core/make-directory.ts";
import type { HistorySource } from "./history-source.ts";
import {
  UnreadableNote,
  type NoteCipher,
  type NoteDocument,
} from "./note-cipher.ts";
import { contentOf, MissingChunk, readVaultAt } from "./vault-past.ts";
import {
  filePathOf,
  makeFolderOf,
  whyNotHeld,
  whyOutside,
  type LeftOut,
} from "./vault-paths.ts";

/** Holds the files until all are written: a folder without it is complete. */
const UNFINISHED = ".hearth-unfinished-export";

interface Exported {
  readonly at: number;
  readonly files: number;
  /** Files that are incomplete on the server, cannot be decrypted or stored by the file system, and why. */
  readonly left: readonly LeftOut[];
}

/** Writes a vault as of `at` into a new or empty folder, byte for byte as on a device. What an interrupted export left is replaced. */
export async function exportVault(
  source: HistorySource,
  cipher: NoteCipher,
  directory: string,
  at: number,
): Promise<Exported> {
  const past = await readVaultAt(source, cipher, at);
  const making = claim(directory);
  const left: LeftOut[] = [...past.unreadable.keys()].map((path) => ({
    path,
    why: "it is damaged or cannot be decrypted",
  }));
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
      // With a wrong passphrase, that of none can.
      if (error instanceof UnreadableNote && files > 0) {
        return "part of it cannot be decrypted";
      }
      throw error;
    }
  };
  for (const { note } of past.notes.values()) {
    const path = filePathOf(note.path);
    if (note.deleted || path === undefined) {
      continue;
    }
    const why =
      whyOutside(path) ??
      whyReserved(path) ??
      (await write(note, join(making, path)));
    if (why === undefined) {
      files += 1;
    } else {
      left.push({ path, why });
    }
  }
  await finish(making, directory);
  return { at: past.at, files, left };
}

/** Not every file system distinguishes upper and lower case. */
function whyReserved(path: string): string | undefined {
  const [folder = ""] = path.split("/");
  return folder.toLowerCase() === UNFINISHED
    ? "an export uses the name itself"
    : undefined;
}

/** Returns the folder to fill. */
function claim(directory: string): string {
  const making = join(directory, UNFINISHED);
  try {
    makeDirectory(directory, 0o700);
    if (readdirSync(directory).every((name) => name === UNFINISHED)) {
      rmSync(making, { recursive: true, force: true });
      mkdirSync(making, { mode: 0o700 });
      return making;
    }
  } catch (error) {
    throw new Failure(sentencesOf(error, directory));
  }
  throw new Failure(
    `${directory} is not empty: choose a new folder, so that no file is overwritten.`,
  );
}

async function finish(making: string, directory: string): Promise<void> {
  try {
    await syncTree(making);
    for (const name of readdirSync(making)) {
      renameSync(join(making, name), join(directory, name));
    }
    rmdirSync(making);
    syncDirectory(directory);
  } catch (error) {
    throw new Failure(sentencesOf(error, directory));
  }
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
