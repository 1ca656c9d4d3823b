import { webcrypto } from "node:crypto";
import { expect, test } from "vitest";
import {
  buildPluginSettings,
  connectionString,
  publicAddress,
  vaultChoices,
  type VaultChoices,
} from "./plugin-settings.ts";
import { openSetupUri, sealSetupUri } from "./setup-uri.ts";

const access = {
  vault: "notes",
  url: "https://notes.example.org",
  user: "notes",
  password: "member-password",
  passphrase: "vault-passphrase",
};

const chosen = (more: Partial<VaultChoices> = {}) =>
  vaultChoices.parse({ ...more });

/** Decrypts the format of the plugin's library with WebCrypto only. */
async function openIndependently(
  uri: string,
  passphrase: string,
): Promise<unknown> {
  const query = new URL(uri).searchParams.get("settings") ?? "";
  expect(query.slice(0, 2)).toBe("%$");
  const bytes = Uint8Array.from(atob(query.slice(2)), (each) =>
    each.charCodeAt(0),
  );
  const { subtle } = webcrypto;
  const master = await subtle.deriveBits(
    {
      name: "PBKDF2",
      hash: "SHA-256",
      iterations: 310_000,
      salt: bytes.slice(0, 32),
    },
    await subtle.importKey(
      "raw",
      new TextEncoder().encode(passphrase),
      "PBKDF2",
      false,
      ["deriveBits"],
    ),
    256,
  );
  const key = await subtle.deriveKey(
    {
      name: "HKDF",
      hash: "SHA-256",
      salt: bytes.slice(44, 76),
      info: new Uint8Array(),
    },
    await subtle.importKey("raw", master, "HKDF", false, ["deriveKey"]),
    { name: "AES-GCM", length: 256 },
    false,
    ["decrypt"],
  );
  const plain = await subtle.decrypt(
    { name: "AES-GCM", iv: bytes.slice(32, 44), tagLength: 128 },
    key,
    bytes.slice(76),
  );
  return JSON.parse(new TextDecoder().decode(plain));
}

test("another implementation decrypts a Setup URI to the same settings", async () => {
  const uri = await sealSetupUri(
    buildPluginSettings(access, chosen()),
    "setup-passphrase",
  );
  expect(uri).toMatch(
    /^obsidian:\/\/setuplivesync\?settings=%25%24[A-Za-z0-9%]+$/,
  );
  const settings = (await openIndependently(uri, "setup-passphrase")) as {
    readonly activeConfigurationId: string;
  };
  const id = settings.activeConfigurationId;
  expect(settings).toEqual({
    couchDB_URI: "https://notes.example.org",
    couchDB_USER: "notes",
    couchDB_PASSWORD: "member-password",
    couchDB_DBNAME: "notes",
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
        name: "notes",
        uri: "sls+https://notes:member-password@notes.example.org/?db=notes",
        isEncrypted: false,
      },
    },
    activeConfigurationId: id,
    configPassphraseStore: "",
    encryptedCouchDBConnection: "",
    encryptedPassphrase: "",
    encrypt: true,
    passphrase: "vault-passphrase",
    usePathObfuscation: true,
    liveSync: true,
    syncOnSave: false,
    periodicReplication: false,
    syncOnStart: false,
    syncOnFileOpen: false,
    batchSave: false,
    syncAfterMerge: false,
  });
});

test("two Setup URIs of the same settings share no bytes, and both can be decrypted", async () => {
  const settings = buildPluginSettings(access, chosen());
  const [one, other] = await Promise.all([
    sealSetupUri(settings, "p"),
    sealSetupUri(settings, "p"),
  ]);
  expect(one.slice(40, 120)).not.toBe(other.slice(40, 120));
  expect(await openSetupUri(other, "p")).toEqual(settings);
});

test("a wrong passphrase and an invalid Setup URI are reported", async () => {
  const uri = await sealSetupUri({ a: 1 }, "right");
  await expect(openSetupUri(uri, "wrong")).rejects.toThrow(
    "wrong passphrase for this Setup URI.",
  );
  await expect(openSetupUri("https://example.org", "p")).rejects.toThrow(
    "invalid Setup URI",
  );
});

test("sync on save, without encryption, with the configuration folder, patterns and the newer file", () => {
  expect(
    buildPluginSettings(
      { ...access, passphrase: null },
      chosen({
        mode: "on-save",
        configFolder: true,
        hiddenPatterns: ["\\/cache\\/", "\\/workspace"],
        exclude: ["^private\\/", "\\.tmp$"],
        newerFile: true,
      }),
    ),
  ).toMatchObject({
    liveSync: false,
    syncOnSave: true,
    syncOnStart: true,
    syncOnFileOpen: true,
    syncAfterMerge: true,
    syncInternalFiles: true,
    syncInternalFilesIgnorePatterns: "\\/cache\\/,\\/workspace",
    syncIgnoreRegEx: "^private\\/|[]|\\.tmp$",
    resolveConflictsByNewerFile: true,
  });
  const plain = buildPluginSettings({ ...access, passphrase: null }, chosen());
  for (const absent of ["encrypt", "passphrase", "usePathObfuscation"]) {
    expect(plain).not.toHaveProperty(absent);
  }
});

test.each([
  ["exclude", ["("], "must be a regular expression"],
  [
    "exclude",
    ["a|[]|b"],
    'must not contain "|[]|": specify each pattern separately',
  ],
  [
    "hiddenPatterns",
    ["a,b"],
    'must not contain ",": specify each pattern separately',
  ],
  ["mode", "sometimes", "must be live or on-save"],
])("%s %j: %s", (key, value, message) => {
  const { error } = vaultChoices.safeParse({ [key]: value });
  expect(error?.issues.map((issue) => issue.message)).toEqual([message]);
});

test.each([
  ["HTTPS://Notes.Example.org/", "https://notes.example.org"],
  ["http://192.168.1.10:5984", "http://192.168.1.10:5984"],
  ["https://example.org/couch/", "https://example.org/couch"],
])("devices are given %s as %s", (text, address) => {
  expect(publicAddress(text)).toBe(address);
});

test.each([
  ["notes.example.org", "is not a valid address for devices"],
  ["ftp://example.org", "is not a valid address for devices"],
  [
    "https://user:password@example.org",
    "must not contain user, password or query",
  ],
  ["https://example.org/?a=1", "must not contain user, password or query"],
])("%s is refused: %s", (text, message) => {
  expect(() => publicAddress(text)).toThrow(message);
});

test("connection strings keep a path before the database", () => {
  expect(
    connectionString({ ...access, url: "https://example.org/couch" }),
  ).toBe("https://notes:member-password@example.org/couch/notes");
});
