import {
  createCipheriv,
  createDecipheriv,
  hkdfSync,
  pbkdf2,
  randomBytes,
} from "node:crypto";
import { promisify } from "node:util";
import { Failure } from "../../core/failure.ts";

/** The content of the plugin's URI before encryption. */
export type PluginSettings = Readonly<Record<string, unknown>>;

const LEAD = "obsidian://setuplivesync?settings=";
/** Prefix that identifies the format of the encrypted settings. */
const FORMAT = "%$";
const PBKDF2_SALT_BYTES = 32;
const IV_BYTES = 12;
const HKDF_SALT_BYTES = 32;
const TAG_BYTES = 16;
const ITERATIONS = 310_000;
const KEY_BYTES = 32;

const derive = promisify(pbkdf2);

/**
 * The settings as `obsidian://setuplivesync?settings=…`, encrypted with a passphrase as the plugin (octagonal-wheels) does:
 * "%$" + base64(pbkdf2Salt[32] | iv[12] | hkdfSalt[32] | AES-256-GCM ciphertext and tag).
 */
export async function sealSetupUri(
  settings: PluginSettings,
  passphrase: string,
): Promise<string> {
  const pbkdf2Salt = randomBytes(PBKDF2_SALT_BYTES);
  const iv = randomBytes(IV_BYTES);
  const hkdfSalt = randomBytes(HKDF_SALT_BYTES);
  const key = await keyOf(passphrase, pbkdf2Salt, hkdfSalt);
  const cipher = createCipheriv("aes-256-gcm", key, iv);
  const sealed = Buffer.concat([
    pbkdf2Salt,
    iv,
    hkdfSalt,
    cipher.update(JSON.stringify(settings), "utf8"),
    cipher.final(),
    cipher.getAuthTag(),
  ]);
  return LEAD + encodeURIComponent(FORMAT + sealed.toString("base64"));
}

/** The settings in a Setup URI. Throws a Failure if the URI is invalid or the passphrase is wrong. */
export async function openSetupUri(
  uri: string,
  passphrase: string,
): Promise<PluginSettings> {
  const text = uri.startsWith(LEAD)
    ? decodeURIComponent(uri.slice(LEAD.length))
    : "";
  const bytes = Buffer.from(text.slice(FORMAT.length), "base64");
  const least = PBKDF2_SALT_BYTES + IV_BYTES + HKDF_SALT_BYTES + TAG_BYTES;
  if (!text.startsWith(FORMAT) || bytes.length < least) {
    throw new Failure(`invalid Setup URI: it must start with ${LEAD}.`);
  }
  const take = pieces(bytes);
  const pbkdf2Salt = take(PBKDF2_SALT_BYTES);
  const iv = take(IV_BYTES);
  const hkdfSalt = take(HKDF_SALT_BYTES);
  const ciphertext = take(bytes.length - least);
  const tag = take(TAG_BYTES);
  const decipher = createDecipheriv(
    "aes-256-gcm",
    await keyOf(passphrase, pbkdf2Salt, hkdfSalt),
    iv,
  ).setAuthTag(tag);
  try {
    const plain = Buffer.concat([
      decipher.update(ciphertext),
      decipher.final(),
    ]);
    return JSON.parse(plain.toString("utf8")) as PluginSettings;
  } catch {
    throw new Failure("wrong passphrase for this Setup URI.");
  }
}

async function keyOf(
  passphrase: string,
  pbkdf2Salt: Uint8Array,
  hkdfSalt: Uint8Array,
): Promise<Buffer> {
  const master = await derive(
    passphrase,
    pbkdf2Salt,
    ITERATIONS,
    KEY_BYTES,
    "sha256",
  );
  return Buffer.from(
    hkdfSync("sha256", master, hkdfSalt, Buffer.alloc(0), KEY_BYTES),
  );
}

function pieces(bytes: Buffer): (length: number) => Buffer {
  let at = 0;
  return (length) => bytes.subarray(at, (at += length));
}
