import {
  createCipheriv,
  createDecipheriv,
  hkdfSync,
  pbkdf2,
  randomBytes,
} from "node:crypto";
import { promisify } from "node:util";
import { Failure } from "../../core/failure.ts";

/** What the plugin's URI carries, before it is sealed. */
export type PluginSettings = Readonly<Record<string, unknown>>;

const lead = "obsidian://setuplivesync?settings=";
/** Names the format of the sealed settings. */
const format = "%$";
const pbkdf2SaltBytes = 32;
const ivBytes = 12;
const hkdfSaltBytes = 32;
const tagBytes = 16;
const iterations = 310_000;
const keyBytes = 32;

const derive = promisify(pbkdf2);

/**
 * The settings as `obsidian://setuplivesync?settings=…`, sealed with a passphrase as the plugin (octagonal-wheels) does:
 * "%$" + base64(pbkdf2Salt[32] | iv[12] | hkdfSalt[32] | AES-256-GCM ciphertext and tag).
 */
export async function sealSetupUri(
  settings: PluginSettings,
  passphrase: string,
): Promise<string> {
  const pbkdf2Salt = randomBytes(pbkdf2SaltBytes);
  const iv = randomBytes(ivBytes);
  const hkdfSalt = randomBytes(hkdfSaltBytes);
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
  return lead + encodeURIComponent(format + sealed.toString("base64"));
}

/** The settings in a Setup URI. Throws a Failure when it is none, or the passphrase is another. */
export async function openSetupUri(
  uri: string,
  passphrase: string,
): Promise<PluginSettings> {
  const text = uri.startsWith(lead)
    ? decodeURIComponent(uri.slice(lead.length))
    : "";
  const bytes = Buffer.from(text.slice(format.length), "base64");
  const least = pbkdf2SaltBytes + ivBytes + hkdfSaltBytes + tagBytes;
  if (!text.startsWith(format) || bytes.length < least)
    throw new Failure(`this is no Setup URI: one begins with ${lead}.`);
  const take = pieces(bytes);
  const pbkdf2Salt = take(pbkdf2SaltBytes);
  const iv = take(ivBytes);
  const hkdfSalt = take(hkdfSaltBytes);
  const ciphertext = take(bytes.length - least);
  const tag = take(tagBytes);
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
    throw new Failure("the passphrase does not open this Setup URI.");
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
    iterations,
    keyBytes,
    "sha256",
  );
  return Buffer.from(
    hkdfSync("sha256", master, hkdfSalt, Buffer.alloc(0), keyBytes),
  );
}

function pieces(bytes: Buffer): (length: number) => Buffer {
  let at = 0;
  return (length) => bytes.subarray(at, (at += length));
}
