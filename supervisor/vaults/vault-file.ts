import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { listDirectory } from "../../core/list-directory.ts";
import { SECOND_MS } from "../../core/duration.ts";
import { syncDirectory, writeDurably } from "../../core/durable-file.ts";
import { Failure, codeOf, sentencesOf } from "../../core/failure.ts";
import { backupName } from "../backup/manifest.ts";
import { vaultChoices } from "./plugin-settings.ts";

const vaultFile = z.looseObject({
  vault: z.string(),
  /** Where devices reach the store. */
  url: z.string(),
  user: z.string(),
  password: z.string(),
  /** The new password of an incomplete rotation; the store may have it already. */
  nextPassword: z.string().optional(),
  /** Replaced by rotations; a backup from before them has the hash of one. */
  earlierPasswords: z.array(z.string()).default([]),
  /** `http://user:password@host:5984/db`, for tools. */
  connection: z.string(),
  /** Of the vault's encryption; null without encryption, or if it must not be stored. */
  vaultPassphrase: z.string().nullable(),
  choices: vaultChoices,
});

/** Credentials for a vault's devices, in `vaults/<vault>.json` (0600; in no backup). */
export type VaultFile = Readonly<z.output<typeof vaultFile>>;

/** The credentials files of all vaults. */
export interface VaultFiles {
  readonly pathOf: (vault: string) => string;
  readonly names: () => readonly string[];
  /** Undefined if there is none; throws a Failure for a damaged one. */
  readonly read: (vault: string) => VaultFile | undefined;
  /** Replaces a file; a damaged one is moved to those of removed vaults. */
  readonly write: (file: VaultFile) => void;
  /** Moves the file to those of removed vaults, for a later restore; returns its new path, undefined if there is none. */
  readonly remove: (vault: string, now: number) => string | undefined;
  /**
   * Finds the file of a user by its password, or by one that a rotation has replaced: the vault's own, one of another vault that
   * shares the user, or one of a removed vault, which is moved back. Undefined if there is none.
   */
  readonly putBack: (
    user: string,
    isPassword: (password: string) => Promise<boolean>,
    now: number,
  ) => Promise<FoundFile | undefined>;
  /** The readable files of removed vaults of this name, the latest first. */
  readonly removed: (vault: string) => readonly VaultFile[];
}

interface FoundFile {
  readonly file: VaultFile;
  /** The password it was found by is an earlier one. */
  readonly isRotated: boolean;
}

/** Directory of the files of removed vaults. */
const REMOVED = "removed";

export function openVaultFiles(directory: string): VaultFiles {
  return {
    pathOf: (vault) => pathIn(directory, vault),
    names: () => namesIn(directory),
    read: (vault) => {
      const path = pathIn(directory, vault);
      try {
        return vaultFile.parse(JSON.parse(readFileSync(path, "utf8")));
      } catch (error) {
        if (codeOf(error) === "ENOENT") {
          return undefined;
        }
        throw new Failure(
          codeOf(error) === undefined
            ? `${path} is damaged: run \`hearth notes rotate ${vault}\` to create a new one, with a new password.`
            : sentencesOf(error, path),
          error,
        );
      }
    },
    write: (file) => {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      const path = pathIn(directory, file.vault);
      // A damaged file may still contain the only copy of the vault's passphrase.
      if (existsSync(path) && parseFile(path) === undefined) {
        remove(directory, file.vault, Date.now());
      }
      writeDurably(path, `${JSON.stringify(file, null, 2)}\n`);
    },
    remove: (vault, now) => remove(directory, vault, now),
    putBack: (user, isPassword, now) =>
      putBack(directory, user, isPassword, now),
    removed: (vault) => keptFiles(directory, vault).map(({ file }) => file),
  };
}

const pathIn = (directory: string, vault: string): string =>
  join(directory, `${vault}.json`);

const namesIn = (directory: string): readonly string[] =>
  listDirectory(directory)
    .filter((name) => name.endsWith(".json"))
    .map((name) => name.slice(0, -".json".length))
    .toSorted();

function remove(
  directory: string,
  vault: string,
  now: number,
): string | undefined {
  const path = pathIn(directory, vault);
  if (!existsSync(path)) {
    return undefined;
  }
  const removed = join(directory, REMOVED);
  const nameAt = (time: number): string =>
    join(removed, `${vault}.${backupName(time)}.json`);
  let time = now;
  while (existsSync(nameAt(time))) {
    time += SECOND_MS;
  }
  const kept = nameAt(time);
  mkdirSync(removed, { recursive: true, mode: 0o700 });
  renameSync(path, kept);
  syncDirectory(removed);
  return kept;
}

async function putBack(
  directory: string,
  user: string,
  isPassword: (password: string) => Promise<boolean>,
  now: number,
): Promise<FoundFile | undefined> {
  const path = pathIn(directory, user);
  const current = namesIn(directory)
    .flatMap((name) => parseFile(pathIn(directory, name)) ?? [])
    .filter((file) => file.user === user);
  for (const file of current) {
    const isRotated = await isFoundBy(file, isPassword);
    if (isRotated !== undefined) {
      return { file, isRotated };
    }
  }
  for (const { path: from, file } of keptFiles(directory, user)) {
    const isRotated = await isFoundBy(file, isPassword);
    if (isRotated !== undefined) {
      remove(directory, user, now);
      renameSync(from, path);
      syncDirectory(directory);
      return { file, isRotated };
    }
  }
  return undefined;
}

interface KeptFile {
  readonly path: string;
  readonly file: VaultFile;
}

/** The latest first; a damaged or unreadable file hides no other one. */
function keptFiles(directory: string, vault: string): readonly KeptFile[] {
  const removed = join(directory, REMOVED);
  return listDirectory(removed)
    .filter((name) => name.startsWith(`${vault}.`))
    .toSorted()
    .toReversed()
    .flatMap((name) => {
      const path = join(removed, name);
      const file = parseFile(path);
      return file === undefined ? [] : [{ path, file }];
    });
}

/** Whether the password that is accepted has been replaced; undefined if none of the file is. */
async function isFoundBy(
  { password, nextPassword, earlierPasswords }: VaultFile,
  isPassword: (password: string) => Promise<boolean>,
): Promise<boolean | undefined> {
  for (const current of [password, nextPassword]) {
    if (current !== undefined && (await isPassword(current))) {
      return false;
    }
  }
  for (const earlier of earlierPasswords) {
    if (await isPassword(earlier)) {
      return true;
    }
  }
  return undefined;
}

/** Undefined for a damaged or unreadable file. */
function parseFile(path: string): VaultFile | undefined {
  try {
    return vaultFile.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return undefined;
  }
}
