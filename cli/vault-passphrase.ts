import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { locateHome } from "../supervisor/home/home.ts";
import { readVariable } from "../core/environment.ts";
import { Failure, sentencesOf } from "../core/failure.ts";
import { askForSecret } from "./ask-for-secret.ts";
import { readNotesState } from "../supervisor/vaults/notes-state.ts";
import { credentialsOfUser } from "../supervisor/vaults/vault-credentials.ts";
import { openVaultFiles } from "../supervisor/vaults/vault-file.ts";

export const passphraseArg = {
  "passphrase-file": {
    type: "string",
    description:
      "A file with the passphrase of an encrypted vault, if it is not in the vault's credentials file",
    valueHint: "file",
  },
} as const;

/** The passphrase of an encrypted vault: from the named file, the environment, the credentials files of this host, or a prompt. It does not leave this process. */
export async function vaultPassphrase(
  vault: string,
  file: string | undefined,
): Promise<string> {
  if (file !== undefined) {
    try {
      return readFileSync(file, "utf8").replace(/\r?\n$/, "");
    } catch (error) {
      throw new Failure(sentencesOf(error, file));
    }
  }
  const given =
    readVariable("HEARTH_VAULT_PASSPHRASE") ??
    storedPassphrase(locateHome().root, vault);
  if (given !== undefined) {
    return given;
  }
  if (!process.stdin.isTTY) {
    throw new Failure(
      `vault "${vault}" is encrypted: set its passphrase with --passphrase-file or HEARTH_VAULT_PASSPHRASE.`,
    );
  }
  return askForSecret(`Passphrase of vault ${vault}`);
}

/**
 * The passphrase in the vault's credentials file, in that of the vault which it is a restored copy of, or in the latest file of a
 * removed vault of its name.
 */
export function storedPassphrase(
  root: string,
  vault: string,
): string | undefined {
  const files = openVaultFiles(join(root, "vaults"));
  const own = files.read(vault);
  const candidates =
    own === undefined
      ? [
          ...credentialsOfUser(files, memberOf(root, vault)),
          ...files.removed(vault),
        ]
      : [own];
  const file = candidates.find((each) => each.vaultPassphrase !== null);
  return file?.vaultPassphrase ?? undefined;
}

function memberOf(root: string, vault: string): string | null {
  const path = join(root, "notes-state.json");
  return existsSync(path)
    ? (readNotesState(path).vaults[vault]?.member ?? null)
    : null;
}
