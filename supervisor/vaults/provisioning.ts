import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { Failure } from "../../core/failure.ts";
import { counted } from "../../core/words.ts";
import { memberOf, memberRules } from "./access-rules.ts";
import { backupsOf } from "./backup-format.ts";
import type { Couch } from "./couch.ts";
import { Database, vaultNames } from "./database.ts";
import { asUnreadable } from "./unreadable-vault.ts";
import { ENCRYPTED_CHUNKS } from "./livesync.ts";
import type { NotesState } from "./notes-state.ts";
import { makePassphrase, makePassword } from "./passwords.ts";
import {
  adviceFor,
  buildPluginSettings,
  connectionString,
  publicAddress,
  vaultChoices,
  type DeviceChoices,
  type VaultChoices,
} from "./plugin-settings.ts";
import { openSetupUri, sealSetupUri } from "./setup-uri.ts";
import { openUsers, type Users } from "./users.ts";
import type { EscrowFiles } from "./seed-escrow.ts";
import {
  credentialsFor,
  credentialsOf,
  credentialsOfUser,
  passphraseOf,
  readableFile,
  sharedCredentials,
  vaultsOfUser,
} from "./vault-credentials.ts";
import type { VaultFile, VaultFiles } from "./vault-file.ts";
import { checkVaultName, NoSuchVault } from "./vault-names.ts";

/** Everything a device needs; displayed once. */
export interface SetupAnswer {
  readonly vault: string;
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly setupUri: string;
  /** Decrypts the Setup URI. */
  readonly setupPassphrase: string;
  /** Of the vault's encryption; null without encryption. */
  readonly vaultPassphrase: string | null;
  /** Path of the credentials file. */
  readonly file: string;
  /** Notes for the operator, one sentence each. */
  readonly advice: readonly string[];
}

export interface Removed {
  readonly vault: string;
  readonly documents: number;
  /** What is kept, one sentence each. */
  readonly stays: readonly string[];
}

interface AddOptions {
  readonly vault: string;
  readonly url?: string | undefined;
  /** By default those of existing credentials. */
  readonly choices?: VaultChoices;
  readonly forgetPassphrase?: boolean;
}

interface SetupUriOptions {
  readonly vault: string;
  readonly url?: string | undefined;
  /** Required if the vault's passphrase is not stored. */
  readonly vaultPassphrase?: string | undefined;
  readonly choices?: DeviceChoices | undefined;
  /** Store `url` as the vault's address. */
  readonly keep?: boolean;
}

interface RotateOptions {
  readonly vault: string;
  readonly vaultPassphrase?: string | undefined;
}

interface ProvisioningParts {
  readonly couch: Couch;
  readonly files: VaultFiles;
  readonly state: NotesState;
  /** Address at which devices reach the store unless another is given. */
  readonly address: () => string;
  readonly escrow: EscrowFiles;
  readonly backups: string;
}

/** 5 groups of 5 unambiguous characters have 123 bits, 4 groups 99. */
const VAULT_PASSPHRASE_GROUPS = 5;
const SETUP_PASSPHRASE_GROUPS = 4;

/** Creates vaults on the store at `couch` and stores their credentials. */
export class Provisioning {
  readonly #parts: ProvisioningParts;
  readonly #users: Users;

  constructor(parts: ProvisioningParts) {
    this.#parts = parts;
    this.#users = openUsers(parts.couch);
  }

  /** Creates database, user, rules and credentials file; an interrupted attempt is continued. */
  async add({
    vault,
    url,
    choices: chosen,
    forgetPassphrase = false,
  }: AddOptions): Promise<SetupAnswer> {
    const { couch, files, state } = this.#parts;
    checkVaultName(vault);
    const unfinished = files.read(vault);
    const choices = chosen ?? unfinished?.choices ?? vaultChoices.parse({});
    const database = new Database(couch, vault);
    const exists = (await database.info()) !== undefined;
    if (
      state.vault(vault).member !== null ||
      (exists && !(await this.isUnfinished(vault)))
    ) {
      throw new Failure(
        `vault "${vault}" already exists. Run \`hearth notes setup-uri ${vault}\` to connect a device.`,
      );
    }
    const user = unfinished?.user ?? vault;
    if (unfinished === undefined && (await this.#users.exists(user))) {
      throw new Failure(
        `user "${user}" already exists in the notes store: choose another name for vault "${vault}".`,
      );
    }
    // A file may also be of a vault whose database was lost: its passphrase is kept, here or among those of removed vaults.
    const kept = unfinished?.vaultPassphrase ?? null;
    const access = {
      vault,
      url: publicAddress(url ?? unfinished?.url ?? this.#parts.address()),
      user,
      password: unfinished?.password || makePassword(),
      passphrase: choices.e2ee
        ? (kept ?? makePassphrase(VAULT_PASSPHRASE_GROUPS))
        : null,
    };
    const vaultPassphrase = forgetPassphrase ? null : access.passphrase;
    if (kept !== vaultPassphrase) {
      files.remove(vault, Date.now());
    }
    // Written first, so that an interrupted attempt is continued by the next one.
    files.write({
      vault,
      url: access.url,
      user,
      password: access.password,
      earlierPasswords: unfinished?.earlierPasswords ?? [],
      connection: connectionString(access),
      vaultPassphrase,
      choices,
    });
    if (!exists) {
      await database.create();
    }
    await this.#users.save(user, access.password);
    await database.secure(memberRules(user));
    state.change(vault, { member: user });
    return this.#seal(access, choices);
  }

  /** Whether an attempt to add a vault was interrupted: it has credentials, and no device has written to it. */
  async isUnfinished(vault: string): Promise<boolean> {
    const { couch, files, state } = this.#parts;
    const info = await new Database(couch, vault).info();
    const documents =
      info === undefined ? 0 : info.doc_count + info.doc_del_count;
    return (
      documents === 0 &&
      state.vault(vault).member === null &&
      files.read(vault) !== undefined
    );
  }

  /** Records the users of vaults again whose state was lost: those with credentials who alone have access. */
  async recordMembers(): Promise<void> {
    const { couch, files, state } = this.#parts;
    for (const vault of await vaultNames(couch)) {
      if (state.vault(vault).member !== null) {
        continue;
      }
      const rules = await new Database(couch, vault)
        .security()
        .catch(asUnreadable);
      const member = typeof rules === "string" ? null : memberOf(rules);
      if (member !== null && credentialsOfUser(files, member).length > 0) {
        state.change(vault, { member });
      }
    }
  }

  /** A new Setup URI for the same vault; `url` sets another address, which `keep` stores as the vault's own. */
  async setupUri({
    vault,
    url,
    vaultPassphrase,
    choices,
    keep,
  }: SetupUriOptions): Promise<SetupAnswer> {
    const { files } = this.#parts;
    const file = credentialsOf(this.#parts, checkVaultName(vault));
    if (file.nextPassword !== undefined) {
      throw new Failure(
        `the rotation of vault "${vault}" is incomplete. Run \`hearth notes rotate ${vault}\` to finish it.`,
      );
    }
    const access = {
      ...file,
      url: publicAddress(url ?? file.url),
      passphrase: passphraseOf(file, vaultPassphrase),
    };
    if (keep === true) {
      files.write({
        ...file,
        url: access.url,
        connection: connectionString(access),
      });
    }
    return this.#seal(access, { ...file.choices, ...choices });
  }

  /** A new password for the vault's user; every device needs the new Setup URI. */
  async rotate({
    vault,
    vaultPassphrase,
  }: RotateOptions): Promise<SetupAnswer> {
    const { files } = this.#parts;
    const file = await this.#fileToRotate(checkVaultName(vault));
    const passphrase = passphraseOf(file, vaultPassphrase);
    const password = file.nextPassword ?? makePassword();
    const holders = [file, ...credentialsOfUser(files, file.user)];
    // The old password stays until the store has accepted the new one; an interrupted rotation continues with the same one.
    for (const each of holders) {
      files.write({ ...each, nextPassword: password });
    }
    await this.#users.save(file.user, password);
    for (const each of holders) {
      const { nextPassword: _taken, ...kept } = each;
      const connection = connectionString({ ...kept, password, passphrase });
      const earlierPasswords = [...each.earlierPasswords, each.password];
      files.write({ ...kept, password, earlierPasswords, connection });
    }
    return this.#seal({ ...file, password, passphrase }, file.choices);
  }

  /** Drops database, user and credentials. */
  async remove(vault: string): Promise<Removed> {
    const { couch, files, state, escrow, backups } = this.#parts;
    const database = new Database(couch, checkVaultName(vault));
    const info = await database.info().catch(asUnreadable);
    // A damaged copy of the seed is reported before anything is removed.
    const { versions: seeds } = escrow.read(vault);
    // Damaged credentials are moved as they are.
    const file = readableFile(files, vault);
    const { member } = state.vault(vault);
    const hasFile = files.names().includes(vault);
    if (info === undefined && !hasFile && member === null) {
      throw new NoSuchVault(vault, files.names());
    }
    const user = file?.user ?? member;
    const sharers = vaultsOfUser(state, user).filter((name) => name !== vault);
    if (user !== null && sharers.length === 0) {
      await this.#users.remove(user);
    }
    await database.drop();
    if (file !== undefined) {
      sharers
        .filter((name) => readableFile(files, name) === undefined)
        .forEach((name) => files.write(credentialsFor(file, name)));
    }
    const kept = files.remove(vault, Date.now());
    state.forget(vault);
    return {
      vault,
      documents: typeof info === "object" ? info.doc_count : 0,
      stays: [
        notesWords(backups, vault),
        ...(seeds.length === 0
          ? []
          : [`Its security seed remains in ${escrow.pathOf(vault)}.`]),
        ...(kept === undefined ? [] : [credentialsWords(kept, file)]),
      ],
    };
  }

  /** After a restore on another machine, the user exists without a file: new credentials are created. */
  async #fileToRotate(vault: string): Promise<VaultFile> {
    const { couch, files, state } = this.#parts;
    const file =
      readableFile(files, vault) ?? sharedCredentials(this.#parts, vault);
    const { member } = state.vault(vault);
    if (file !== undefined) {
      return file;
    }
    if (member === null) {
      throw new NoSuchVault(vault, files.names());
    }
    const encrypted = await new Database(couch, vault).firstBetween(
      ...ENCRYPTED_CHUNKS,
    );
    return {
      vault,
      url: publicAddress(this.#parts.address()),
      user: member,
      password: "",
      earlierPasswords: [],
      connection: "",
      vaultPassphrase: null,
      choices: vaultChoices.parse({ e2ee: encrypted !== undefined }),
    };
  }

  async #seal(
    access: Parameters<typeof buildPluginSettings>[0],
    choices: VaultChoices,
  ): Promise<SetupAnswer> {
    const settings = buildPluginSettings(access, choices);
    const setupPassphrase = makePassphrase(SETUP_PASSPHRASE_GROUPS);
    const setupUri = await sealSetupUri(settings, setupPassphrase);
    const opened = await openSetupUri(setupUri, setupPassphrase);
    if (!isDeepStrictEqual(opened, settings)) {
      throw new Failure(
        "the new Setup URI does not decode to its settings and was discarded. Please report this.",
      );
    }
    const { vault, url, user, password, passphrase } = access;
    return {
      vault,
      url,
      user,
      password,
      setupUri,
      setupPassphrase,
      vaultPassphrase: passphrase,
      file: this.#parts.files.pathOf(vault),
      advice: adviceFor(url),
    };
  }
}

function notesWords(backups: string, vault: string): string {
  for (const { name, entry } of backupsOf(backups, vault, Date.now())) {
    return `The notes remain on the devices, and in backups: the newest is ${join(backups, name)} with ${counted(entry.documents, "document")}. Run \`hearth notes restore --vault ${vault}\` to restore it.`;
  }
  return "The notes remain on the devices only: no backup on this machine contains the vault.";
}

function credentialsWords(path: string, file: VaultFile | undefined): string {
  if (file === undefined) {
    return `Its credentials are damaged and remain in ${path}: they may include the passphrase, without which its backups cannot be read.`;
  }
  const passphrase =
    file.vaultPassphrase === null
      ? ""
      : " They include the passphrase, without which its backups cannot be read.";
  return `Its credentials remain in ${path}: a restore uses them again.${passphrase}`;
}
