import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { listDirectory } from "../../core/list-directory.ts";
import { writeDurably } from "../../core/durable-file.ts";
import { Failure, codeOf, sentencesOf } from "../../core/failure.ts";
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
  /** True if it existed. */
  readonly remove: (vault: string) => boolean;
}

export function openVaultFiles(directory: string): VaultFiles {
  const pathOf = (vault: string) => join(directory, `${vault}.json`);
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
    remove: (vault) => {
      try {
        rmSync(pathOf(vault));
        return true;
      } catch (error) {
        if (codeOf(error) === "ENOENT") {
          return false;
        }
        throw error;
      }
    },
  };
}
