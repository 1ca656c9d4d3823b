import { createDecipheriv, hash, hkdfSync } from "node:crypto";
import { xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import type { Secret } from "../config/secret.ts";

/**
 * How LiteLLM encrypts texts in its database (litellm/proxy/common_utils/encrypt_decrypt_utils.py): NaCl's secret box in
 * base64, or AES-256-GCM after a version marker. The key is derived from LITELLM_SALT_KEY, else from its master key.
 */
const GCM = /^(v[23]):gcm:(.*)$/;
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

const GCM_NONCE_BYTES = 12;
const BOX_NONCE_BYTES = 24;
const TAG_BYTES = 16;

/** A text in clear; one that was never encrypted as it is. null: encrypted, and none of the keys decrypts it. */
export function unseal(value: string, keys: readonly Secret[]): string | null {
  const marked = GCM.exec(value);
  const open = marked === null ? openBox : openGcm(marked[1] === "v3");
  const bytes = Buffer.from(marked?.[2] ?? value, "base64");
  if (marked === null && !couldBeBox(value, bytes)) {
    return value;
  }
  for (const key of keys) {
    try {
      return open(bytes, key);
    } catch {
      // Another key's: the next one is tried.
    }
  }
  return null;
}

function couldBeBox(value: string, bytes: Buffer): boolean {
  return (
    value.length % 4 === 0 &&
    BASE64.test(value) &&
    bytes.length >= BOX_NONCE_BYTES + TAG_BYTES
  );
}

function openBox(bytes: Buffer, key: Secret): string {
  const box = xsalsa20poly1305(
    hashed(key),
    Uint8Array.from(bytes.subarray(0, BOX_NONCE_BYTES)),
  );
  const text = box.decrypt(Uint8Array.from(bytes.subarray(BOX_NONCE_BYTES)));
  return Buffer.from(text).toString("utf8");
}

function openGcm(isDerived: boolean) {
  return (bytes: Buffer, key: Secret): string => {
    const decipher = createDecipheriv(
      "aes-256-gcm",
      isDerived
        ? Buffer.from(
            hkdfSync("sha256", key.reveal(), "", "litellm-at-rest-v3", 32),
          )
        : hashed(key),
      bytes.subarray(0, GCM_NONCE_BYTES),
      { authTagLength: TAG_BYTES },
    );
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    const text = decipher.update(bytes.subarray(GCM_NONCE_BYTES, -TAG_BYTES));
    return Buffer.concat([text, decipher.final()]).toString("utf8");
  };
}

function hashed(key: Secret): Buffer {
  return hash("sha256", key.reveal(), "buffer");
}
