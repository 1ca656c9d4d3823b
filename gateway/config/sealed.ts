import {
  createCipheriv,
  createDecipheriv,
  hkdfSync,
  randomBytes,
} from "node:crypto";
import { secret, type Secret } from "./secret.ts";

/** Encrypts what the database shall not know: AES-256-GCM, under a key derived from the installation's salt key. */

const VERSION = "1";
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts a text for one place: what was sealed for another row does not open there.
 */
export function seal(text: string, key: Secret, place: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", derived(key), iv);
  cipher.setAAD(Buffer.from(place));
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return `${VERSION}:${Buffer.concat([iv, sealed, cipher.getAuthTag()]).toString("base64")}`;
}

export interface Opened {
  readonly text: Secret;
  /** Which of the keys opened it; 0 is the one that seals today. */
  readonly by: number;
}

/** Tries the keys in order; null: none of them opens it. */
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
      // Another key's: the next one is tried.
    }
  }
  return null;
}

function derived(key: Secret): Buffer {
  return Buffer.from(
    hkdfSync("sha256", key.reveal(), "", "hearth provider keys", 32),
  );
}
