import {
  createCipheriv,
  createDecipheriv,
  hkdfSync,
  randomBytes,
} from "node:crypto";
import { secret, type Secret } from "./secret.ts";
import type { GeneralConfig } from "./types.ts";

/** Encrypts secrets stored in the database: AES-256-GCM, with a key derived from the installation's salt key. */

const VERSION = "1";
const IV_BYTES = 12;
const TAG_BYTES = 16;

export type SealingKeys = Pick<
  GeneralConfig,
  "saltKey" | "masterKey" | "previousMasterKey"
>;

/** Keys that may have encrypted a text, the current one first. */
export function sealingKeys({
  saltKey,
  masterKey,
  previousMasterKey,
}: SealingKeys): readonly [Secret, ...Secret[]] {
  const previous = previousMasterKey?.key;
  const older = previous === undefined ? [] : [previous];
  return saltKey === null
    ? [masterKey, ...older]
    : [saltKey, masterKey, ...older];
}

/** Encrypts a text for one place: the result cannot be decrypted for another row. */
export function seal(text: string, key: Secret, place: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", derived(key), iv);
  cipher.setAAD(Buffer.from(place));
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return `${VERSION}:${Buffer.concat([iv, sealed, cipher.getAuthTag()]).toString("base64")}`;
}

export interface Opened {
  readonly text: Secret;
  /** Index of the key that decrypted it; 0 is the current one. */
  readonly by: number;
}

/** Tries the keys in order; null: none of them decrypts it. */
export function open(
  sealed: string,
  keys: readonly Secret[],
  place: string,
): Opened | null {
  const [version, data = ""] = sealed.split(":");
  const bytes = Buffer.from(data, "base64");
  if (version !== VERSION || bytes.length < IV_BYTES + TAG_BYTES) {
    return null;
  }
  for (const [by, key] of keys.entries()) {
    const decipher = createDecipheriv(
      "aes-256-gcm",
      derived(key),
      bytes.subarray(0, IV_BYTES),
    );
    decipher.setAAD(Buffer.from(place));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const text =
        decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)).toString("utf8") +
        decipher.final("utf8");
      return { text: secret(text), by };
    } catch {
      // Encrypted with another key: try the next one.
    }
  }
  return null;
}

const derivedKeys = new WeakMap<Secret, Buffer>();

function derived(key: Secret): Buffer {
  const known = derivedKeys.get(key);
  if (known !== undefined) {
    return known;
  }
  const bytes = Buffer.from(
    hkdfSync("sha256", key.reveal(), "", "hearth provider keys", 32),
  );
  derivedKeys.set(key, bytes);
  return bytes;
}
