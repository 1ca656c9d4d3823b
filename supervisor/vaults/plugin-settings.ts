import { hash } from "node:crypto";
import { z } from "zod";
import type { PluginSettings } from "./setup-uri.ts";
import { withoutTrailingSlashes } from "../../core/trailing-slashes.ts";
import { InvalidVaultInput } from "./vault-names.ts";

/** Regular expressions that the plugin stores in one text, so that none may contain the separator. */
const patterns = (separator: string) =>
  z.array(
    z
      .string()
      .min(1, "must not be empty")
      .refine(isRegularExpression, { error: "must be a regular expression" })
      .refine((text) => !text.includes(separator), {
        error: `must not contain "${separator}": specify each pattern separately`,
      }),
  );
const BETWEEN_HIDDEN_PATTERNS = ",";
const BETWEEN_EXCLUDE_PATTERNS = "|[]|";

const choices = {
  mode: z.enum(["live", "on-save"], { error: "must be live or on-save" }),
  /** Sync Obsidian's own folder too; `hiddenPatterns` of it are left out. */
  configFolder: z.boolean(),
  hiddenPatterns: patterns(BETWEEN_HIDDEN_PATTERNS),
  /** Paths that are not synced. */
  exclude: patterns(BETWEEN_EXCLUDE_PATTERNS),
  /** Resolve conflicts automatically: the file with the newer time is kept. */
  newerFile: z.boolean(),
};

/** Sync settings of a vault, chosen by the operator. */
export const vaultChoices = z.strictObject({
  /** End-to-end encryption, on the devices. */
  e2ee: z.boolean().default(true),
  mode: choices.mode.default("live"),
  configFolder: choices.configFolder.default(false),
  // The plugin's own files, and the state of the workspace.
  hiddenPatterns: choices.hiddenPatterns.default([
    "\\/node_modules\\/",
    "\\/\\.git\\/",
    "\\/obsidian-livesync\\/",
    "\\/workspace$",
    "\\/workspace.json$",
    "\\/workspace-mobile.json$",
  ]),
  exclude: choices.exclude.default([]),
  newerFile: choices.newerFile.default(false),
});

/** Settings that can differ for a single device. */
export const deviceChoices = z.strictObject(choices).partial();
export type DeviceChoices = Readonly<z.output<typeof deviceChoices>>;

export type VaultChoices = Readonly<z.output<typeof vaultChoices>>;

interface VaultAccess {
  readonly vault: string;
  /** Where devices reach the store; no trailing slash. */
  readonly url: string;
  readonly user: string;
  readonly password: string;
  /** Of the vault's encryption; null without encryption. */
  readonly passphrase: string | null;
}

/** The plugin's settings for one vault, with the plugin's names (LiveSync 1.0.16). */
export function buildPluginSettings(
  access: VaultAccess,
  choices: VaultChoices,
): PluginSettings {
  const { vault, url, user, password, passphrase } = access;
  const live = choices.mode === "live";
  const id = remoteId(access);
  return {
    couchDB_URI: url,
    couchDB_USER: user,
    couchDB_PASSWORD: password,
    couchDB_DBNAME: vault,
    customChunkSize: 60,
    concurrencyOfReadChunksOnline: 30,
    minimumIntervalOfReadChunksOnline: 25,
    isConfigured: true,
    usePluginSyncV2: true,
    handleFilenameCaseSensitive: false,
    syncMaxSizeInMB: 50,
    remoteConfigurations: {
      [id]: {
        id,
        name: vault,
        uri: connectionUri(access),
        isEncrypted: false,
      },
    },
    activeConfigurationId: id,
    configPassphraseStore: "",
    encryptedCouchDBConnection: "",
    encryptedPassphrase: "",
    ...(passphrase === null
      ? {}
      : { encrypt: true, passphrase, usePathObfuscation: true }),
    liveSync: live,
    syncOnSave: !live,
    syncOnStart: !live,
    syncOnFileOpen: !live,
    syncAfterMerge: !live,
    ...(live ? { periodicReplication: false, batchSave: false } : {}),
    ...(choices.configFolder
      ? {
          syncInternalFiles: true,
          syncInternalFilesIgnorePatterns: choices.hiddenPatterns.join(
            BETWEEN_HIDDEN_PATTERNS,
          ),
        }
      : {}),
    ...(choices.exclude.length > 0
      ? { syncIgnoreRegEx: choices.exclude.join(BETWEEN_EXCLUDE_PATTERNS) }
      : {}),
    ...(choices.newerFile ? { resolveConflictsByNewerFile: true } : {}),
  };
}

function isRegularExpression(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}

/** `http://user:password@host:5984/db`, for tools. */
export function connectionString(access: VaultAccess): string {
  const { origin, pathname } = withCredentials(access);
  return `${origin}${pathname}${encodeURIComponent(access.vault)}`;
}

/** A remote in the plugin's format: `sls+https://user:password@host/?db=NAME`. */
function connectionUri(access: VaultAccess): string {
  const { origin, pathname } = withCredentials(access);
  return `sls+${origin}${pathname}?db=${encodeURIComponent(access.vault)}`;
}

function withCredentials({ url, user, password }: VaultAccess): {
  readonly origin: string;
  readonly pathname: string;
} {
  const { protocol, host, pathname } = new URL(url);
  return {
    origin: `${protocol}//${encodeURIComponent(user)}:${encodeURIComponent(password)}@${host}`,
    pathname: pathname.endsWith("/") ? pathname : `${pathname}/`,
  };
}

/** Equal for the same remote, so that a second Setup URI does not add it again. */
function remoteId({ vault, url }: VaultAccess): string {
  return hash("sha256", `${url}/${vault}`).slice(0, 16);
}

/** An address for devices in the plugin's format: lower case, no trailing slash, no credentials. Throws what is wrong with it. */
export function publicAddress(text: string): string {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) {
    throw new InvalidVaultInput(
      `"${text}" is not a valid address for devices: use one such as https://notes.example.org or http://192.168.1.10:5984.`,
    );
  }
  const { username, password, search, hash, href } = new URL(text);
  if (username !== "" || password !== "" || search !== "" || hash !== "") {
    throw new InvalidVaultInput(
      "the address for devices must not contain user, password or query: use the form https://notes.example.org.",
    );
  }
  return withoutTrailingSlashes(href.toLowerCase());
}

/** Requirements for devices to sync with the store at an address, one sentence each. */
export function adviceFor(url: string): readonly string[] {
  const { protocol, hostname } = new URL(url);
  const local = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
  return [
    ...(local
      ? [
          "This address is reachable only from this machine: set an address that your devices can reach with --url.",
        ]
      : []),
    ...(protocol === "http:"
      ? [
          "Phones and tablets sync over HTTPS only, with a certificate they trust: put a proxy or a VPN with HTTPS in front and give its address with --url.",
        ]
      : []),
  ];
}
