import { hash } from "node:crypto";

/**
 * Payers and models are indexed by name in the ledger. Up to seven names form one entry, of which
 * Postgres takes 2,704 bytes.
 */
export const MAX_NAME_BYTES = 256;

/** What is wrong with a name, as the rest of a sentence about it; null: the ledger can hold it. */
export function faultOfName(name: string): string | null {
  if (!name.isWellFormed() || name.includes("\0")) {
    return "contains characters that cannot be stored (NUL or an unpaired surrogate): remove them";
  }
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) {
    return `must be at most ${MAX_NAME_BYTES} bytes of UTF-8`;
  }
  return null;
}

const HASH_CHARACTERS = 16;

/** A name that the ledger can hold: itself, or its beginning with a hash of the whole. */
export function storableName(name: string): string {
  if (faultOfName(name) === null) {
    return name;
  }
  const room = MAX_NAME_BYTES - HASH_CHARACTERS - 1;
  const beginning = Buffer.from(name.replaceAll("\0", "\uFFFD"))
    .subarray(0, room)
    .toString("utf8")
    // Of a character that was cut in two.
    .replace(/\uFFFD+$/, "");
  return `${beginning}~${hash("sha256", name).slice(0, HASH_CHARACTERS)}`;
}
