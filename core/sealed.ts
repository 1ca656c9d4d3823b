import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const ALGORITHM = "aes-256-gcm";
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts a text with AES-256-GCM: initialization vector, ciphertext, authentication tag. `key` has 32 bytes; the result can
 * only be opened for the same place, which is not part of it.
 */
export function sealBytes(text: string, key: Uint8Array, place = ""): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, iv);
  cipher.setAAD(Buffer.from(place));
  return Buffer.concat([
    iv,
    cipher.update(text, "utf8"),
    cipher.final(),
    cipher.getAuthTag(),
  ]);
}

/** The text; undefined if the bytes were sealed with another key or for another place, or were altered. */
export function openBytes(
  sealed: Uint8Array,
  key: Uint8Array,
  place = "",
): string | undefined {
  if (sealed.length < IV_BYTES + TAG_BYTES) {
    return undefined;
  }
  const decipher = createDecipheriv(
    ALGORITHM,
    key,
    sealed.subarray(0, IV_BYTES),
  );
  decipher.setAAD(Buffer.from(place));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([
      decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES)),
      decipher.final(),
    ]).toString("utf8");
  } catch {
    return undefined;
  }
}
