import { Failure } from "../../core/failure.ts";
import type { NotesState } from "./notes-state.ts";
import { connectionString } from "./plugin-settings.ts";
import type { VaultFile, VaultFiles } from "./vault-file.ts";
import { NoSuchVault } from "./vault-names.ts";

interface CredentialParts {
  readonly files: VaultFiles;
  readonly state: NotesState;
}

/** The credentials of a vault, its own or shared. Throws a Failure without any. */
export function credentialsOf(
  { files, state }: CredentialParts,
  vault: string,
): VaultFile {
  const file = files.read(vault) ?? sharedCredentials({ files, state }, vault);
  if (file !== undefined) {
    return file;
  }
  if (state.vault(vault).member === null) {
    throw new NoSuchVault(vault, files.names());
  }
  throw new Failure(
    `the credentials of vault "${vault}" are missing (backups do not contain them). Run \`hearth notes rotate ${vault}\` to create new ones.`,
  );
}

/** A vault that was restored under another name shares the user of the original. */
export function sharedCredentials(
  { files, state }: CredentialParts,
  vault: string,
): VaultFile | undefined {
  const { member } = state.vault(vault);
  const file = credentialsOfUser(files, member).at(0);
  return file === undefined ? undefined : credentialsFor(file, vault);
}

/** The same user and passphrase for another vault. */
export function credentialsFor(file: VaultFile, vault: string): VaultFile {
  const passphrase = file.vaultPassphrase;
  const connection = connectionString({ ...file, vault, passphrase });
  return { ...file, vault, connection };
}

export function credentialsOfUser(
  files: VaultFiles,
  user: string | null,
): readonly VaultFile[] {
  return files
    .names()
    .flatMap((name) => readableFile(files, name) ?? [])
    .filter((file) => file.user === user);
}

/** The file, or undefined if it is missing or damaged. */
export function readableFile(
  files: VaultFiles,
  vault: string,
): VaultFile | undefined {
  try {
    return files.read(vault);
  } catch {
    return undefined;
  }
}

/** More than one if a vault was restored under another name. */
export function vaultsOfUser(
  state: NotesState,
  user: string | null,
): readonly string[] {
  return state.known().filter((name) => state.vault(name).member === user);
}

/** The passphrase that was given or stored; null for a vault without encryption. Throws a Failure if it is needed and missing. */
export function passphraseOf(
  file: VaultFile,
  given: string | undefined,
): string | null {
  if (!file.choices.e2ee) {
    return null;
  }
  const passphrase = given ?? file.vaultPassphrase;
  if (passphrase !== null) {
    return passphrase;
  }
  throw new Failure(
    `the passphrase of vault "${file.vault}" is not stored: set HEARTH_VAULT_PASSPHRASE or HEARTH_VAULT_PASSPHRASE_FILE.`,
  );
}
