import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { listDirectory } from "../../core/list-directory.ts";
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
  readonly write: (file: VaultFile) => void;
  /** Deletes the file. One with a passphrase, without which the vault's backups cannot be read, is moved; returns its new path. */
  readonly remove: (vault: string, now: number) => string | undefined;
  /** Moves back the file of a removed vault whose password is valid again, unless the vault has a file. */
  readonly putBack: (
    vault: string,
    isValid: (password: string) => Promise<boolean>,
  ) => Promise<void>;
  /** The readable files of removed vaults of this name, the latest first. */
  readonly removed: (vault: string) => readonly VaultFile[];
}

/** Directory of the files of removed vaults. */
const REMOVED = "removed";

export function openVaultFiles(directory: string): VaultFiles {
  const pathOf = (vault: string) => join(directory, `${vault}.json`);
  const removed = join(directory, REMOVED);
  return {
    pathOf,
    names: () =>
      listDirectory(directory)
        .filter((name) => name.endsWith(".json"))
        .map((name) => name.slice(0, -".json".length))
        .toSorted(),
    read: (vault) => {
      const path = pathOf(vault);
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
      writeDurably(pathOf(file.vault), `${JSON.stringify(file, null, 2)}\n`);
    },
    remove: (vault, now) => {
      const path = pathOf(vault);
      if (!existsSync(path)) {
        return undefined;
      }
      if (hasNoPassphrase(path)) {
        rmSync(path);
        return undefined;
      }
      const kept = join(removed, `${vault}.${backupName(now)}.json`);
      mkdirSync(removed, { recursive: true, mode: 0o700 });
      renameSync(path, kept);
      syncDirectory(removed);
      return kept;
    },
    putBack: async (vault, isValid) => {
      const kept = existsSync(pathOf(vault))
        ? undefined
        : await findValid(keptFiles(removed, vault), isValid);
      if (kept !== undefined) {
        renameSync(kept, pathOf(vault));
        syncDirectory(directory);
      }
    },
    removed: (vault) => keptFiles(removed, vault).map(({ file }) => file),
  };
}

interface KeptFile {
  readonly path: string;
  readonly file: VaultFile;
}

/** The latest first; a damaged or unreadable file hides no other one. */
function keptFiles(removed: string, vault: string): readonly KeptFile[] {
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

async function findValid(
  kept: readonly KeptFile[],
  isValid: (password: string) => Promise<boolean>,
): Promise<string | undefined> {
  for (const { path, file } of kept) {
    for (const password of [file.password, file.nextPassword]) {
      if (password !== undefined && (await isValid(password))) {
        return path;
      }
    }
  }
  return undefined;
}

/** False for a damaged or unreadable file, too. */
function hasNoPassphrase(path: string): boolean {
  return parseFile(path)?.vaultPassphrase === null;
}

/** Undefined for a damaged or unreadable file. */
function parseFile(path: string): VaultFile | undefined {
  try {
    return vaultFile.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return undefined;
  }
}
