import { isDeepStrictEqual } from "node:util";
import { Failure } from "../../core/failure.ts";
import { memberRules } from "./access-rules.ts";
import type { Couch } from "./couch.ts";
import { openDatabase } from "./database.ts";
import { ENCRYPTED_CHUNKS } from "./livesync.ts";
import type { NotesState } from "./notes-state.ts";
import { makePassphrase, makePassword } from "./passwords.ts";
import {
  buildPluginSettings,
  connectionString,
  publicAddress,
  vaultChoices,
  type DeviceChoices,
  type VaultChoices,
} from "./plugin-settings.ts";
import { openSetupUri, sealSetupUri } from "./setup-uri.ts";
import { openUsers } from "./users.ts";
import type { EscrowFiles } from "./seed-escrow.ts";
import type { VaultFile, VaultFiles } from "./vault-file.ts";
import { checkVaultName, NoSuchVault } from "./vault-names.ts";

/** What a device needs, said once. */
export interface SetupAnswer {
  readonly vault: string;
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly setupUri: string;
  /** Opens the Setup URI. */
  readonly setupPassphrase: string;
  /** Of the vault's encryption; null without. */
  readonly vaultPassphrase: string | null;
  /** Where the credentials lie. */
  readonly file: string;
  /** What an operator should know about it, a sentence each. */
  readonly advice: readonly string[];
}

export interface Removed {
  readonly vault: string;
  readonly documents: number;
  /** What stays, a sentence each. */
  readonly stays: readonly string[];
}

export interface Provisioning {
  /** Makes database, user, rules and credentials file; a try that broke off is taken up. */
  readonly add: (wish: {
    readonly vault: string;
    readonly url?: string | undefined;
    readonly choices: VaultChoices;
    readonly forgetPassphrase?: boolean;
  }) => Promise<SetupAnswer>;
  /** A new Setup URI for the same vault; `url` makes it for another address, which `keep` makes the vault's own. */
  readonly setupUri: (wish: {
    readonly vault: string;
    readonly url?: string | undefined;
    /** Where the vault's own was to be forgotten. */
    readonly vaultPassphrase?: string | undefined;
    readonly choices?: DeviceChoices | undefined;
    readonly keep?: boolean;
  }) => Promise<SetupAnswer>;
  /** A new password for the vault's user; every device needs the new Setup URI. */
  readonly rotate: (wish: {
    readonly vault: string;
    readonly vaultPassphrase?: string | undefined;
  }) => Promise<SetupAnswer>;
  /** Drops database, user and credentials. */
  readonly remove: (vault: string) => Promise<Removed>;
}

/** 5 groups of 5 clear characters hold 123 bits, 4 groups 99. */
const VAULT_PASSPHRASE_GROUPS = 5;
const SETUP_PASSPHRASE_GROUPS = 4;

/** Makes vaults on the store at `couch` and keeps their credentials. `address` is where devices reach the store unless told. */
export function openProvisioning(parts: {
  readonly couch: Couch;
  readonly files: VaultFiles;
  readonly state: NotesState;
  readonly address: () => string;
  readonly escrow: EscrowFiles;
  readonly backups: string;
}): Provisioning {
  const { couch, files, state } = parts;
  const users = openUsers(couch);

  async function add({
    vault,
    url,
    choices,
    forgetPassphrase = false,
  }: Parameters<Provisioning["add"]>[0]): Promise<SetupAnswer> {
    checkVaultName(vault);
    const address = publicAddress(url ?? parts.address());
    const database = openDatabase(couch, vault);
    const exists = (await database.info()) !== undefined;
    const unfinished = files.read(vault);
    if (
      state.vault(vault).member !== null ||
      (exists && unfinished === undefined)
    ) {
      throw new Failure(
        `there is a vault "${vault}" already: \`hearth notes setup-uri ${vault}\` shows how to connect a device.`,
      );
    }
    const user = unfinished?.user ?? vault;
    if (unfinished === undefined && (await users.exists(user))) {
      throw new Failure(
        `the notes store has a user "${user}" already, so the vault "${vault}" cannot have its own of that name: choose another name.`,
      );
    }
    const access = {
      vault,
      url: address,
      user,
      password: makePassword(),
      passphrase: choices.e2ee ? makePassphrase(VAULT_PASSPHRASE_GROUPS) : null,
    };
    // First of all: with the file there, a try that breaks off later is taken up by the next one.
    const keep = (passphrase: string | null): void =>
      files.write({
        vault,
        url: address,
        user,
        password: access.password,
        connection: connectionString(access),
        vaultPassphrase: passphrase,
        choices,
      });
    keep(forgetPassphrase ? null : access.passphrase);
    if (!exists) {
      await database.create();
    }
    await users.save(user, access.password);
    await database.secure(memberRules(user));
    state.change(vault, { member: user });
    return seal(access, choices);
  }

  async function seal(
    access: Parameters<typeof buildPluginSettings>[0],
    choices: VaultChoices,
  ): Promise<SetupAnswer> {
    const settings = buildPluginSettings(access, choices);
    const setupPassphrase = makePassphrase(SETUP_PASSPHRASE_GROUPS);
    const setupUri = await sealSetupUri(settings, setupPassphrase);
    const opened = await openSetupUri(setupUri, setupPassphrase);
    if (!isDeepStrictEqual(opened, settings)) {
      throw new Failure(
        "the Setup URI that was just made does not open to its own settings: nothing is shown; please report this.",
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
      file: files.pathOf(vault),
      advice: adviceFor(url),
    };
  }

  function fileOf(vault: string): VaultFile {
    const file = files.read(vault) ?? sharedFile(vault);
    if (file !== undefined) {
      return file;
    }
    if (state.vault(vault).member === null) {
      throw new NoSuchVault(vault);
    }
    throw new Failure(
      `the credentials of vault "${vault}" are not here (they are in no backup): \`hearth notes rotate ${vault}\` makes new ones.`,
    );
  }

  /** A vault that was restored beside another has that one's user. */
  function sharedFile(vault: string): VaultFile | undefined {
    const { member } = state.vault(vault);
    const file = filesOf(member).at(0);
    return file === undefined ? undefined : { ...file, vault };
  }

  function filesOf(user: string | null): readonly VaultFile[] {
    return files
      .names()
      .flatMap((name) => readable(files, name) ?? [])
      .filter((file) => file.user === user);
  }

  function isShared(user: string, vault: string): boolean {
    return state
      .known()
      .some((name) => name !== vault && state.vault(name).member === user);
  }

  /** After a restore on another machine there is a user but no file: one is made. */
  async function fileToRotate(vault: string): Promise<VaultFile> {
    const file = readable(files, vault) ?? sharedFile(vault);
    const { member } = state.vault(vault);
    if (file !== undefined) {
      return file;
    }
    if (member === null) {
      throw new NoSuchVault(vault);
    }
    const e2ee = await openDatabase(couch, vault).hasBetween(
      ...ENCRYPTED_CHUNKS,
    );
    return {
      vault,
      url: publicAddress(parts.address()),
      user: member,
      password: "",
      connection: "",
      vaultPassphrase: null,
      choices: vaultChoices.parse({ e2ee }),
    };
  }

  function passphraseOf(
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
      `the passphrase of vault "${file.vault}" is not kept here: give it in HEARTH_VAULT_PASSPHRASE (or the file that HEARTH_VAULT_PASSPHRASE_FILE names).`,
    );
  }

  return {
    add,
    setupUri: async ({ vault, url, vaultPassphrase, choices, keep }) => {
      const file = fileOf(checkVaultName(vault));
      if (file.nextPassword !== undefined) {
        throw new Failure(
          `a rotation of vault "${vault}" is not over: \`hearth notes rotate ${vault}\` goes on with it.`,
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
      return seal(access, { ...file.choices, ...choices });
    },
    rotate: async ({ vault, vaultPassphrase }) => {
      const file = await fileToRotate(checkVaultName(vault));
      const passphrase = passphraseOf(file, vaultPassphrase);
      const password = file.nextPassword ?? makePassword();
      const holders = [file, ...filesOf(file.user)];
      // The old one stays until the store has taken the new one; a rotation that broke off goes on with the same.
      for (const each of holders) {
        files.write({ ...each, nextPassword: password });
      }
      await users.save(file.user, password);
      for (const each of holders) {
        const { nextPassword: _taken, ...kept } = each;
        const connection = connectionString({ ...kept, password, passphrase });
        files.write({ ...kept, password, connection });
      }
      return seal({ ...file, password, passphrase }, file.choices);
    },
    remove: async (vault) => {
      const database = openDatabase(couch, checkVaultName(vault));
      const info = await database.info();
      const file = files.read(vault);
      const { member } = state.vault(vault);
      if (info === undefined && file === undefined && member === null) {
        throw new NoSuchVault(vault);
      }
      const user = file?.user ?? member;
      if (user !== null && !isShared(user, vault)) {
        await users.remove(user);
      }
      await database.drop();
      files.remove(vault);
      state.forget(vault);
      return {
        vault,
        documents: info?.doc_count ?? 0,
        stays: [
          `The notes stay on the devices that have them, and in the backups in ${parts.backups}: \`hearth notes restore\` brings them back from there.`,
          ...(parts.escrow.read(vault).versions.length === 0
            ? []
            : [`Its security seed stays in ${parts.escrow.pathOf(vault)}.`]),
        ],
      };
    },
  };
}

/** The file, or undefined when it is not there or broken. */
function readable(files: VaultFiles, vault: string): VaultFile | undefined {
  try {
    return files.read(vault);
  } catch {
    return undefined;
  }
}

/** What an address means for devices. */
function adviceFor(url: string): readonly string[] {
  const { protocol, hostname } = new URL(url);
  const local = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
  return [
    ...(local
      ? [
          "Only this machine reaches that address: give one that your devices reach with --url.",
        ]
      : []),
    ...(protocol === "http:"
      ? [
          "Phones and tablets sync over HTTPS only, with a certificate they trust: put a proxy or a VPN with HTTPS in front and give its address with --url.",
        ]
      : []),
  ];
}
