import { hkdfSync } from "node:crypto";
import { openBytes, sealBytes } from "../../core/sealed.ts";
import { secret, type Secret } from "./secret.ts";
import type { GeneralConfig } from "./types.ts";

/** Encrypts secrets stored in the database, with a key derived from the installation's salt key. */

const VERSION = "1";

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
  return `${VERSION}:${sealBytes(text, derived(key), place).toString("base64")}`;
}

interface Opened {
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
  if (version !== VERSION) {
    return null;
  }
  const bytes = Buffer.from(data, "base64");
  for (const [by, key] of keys.entries()) {
    const text = openBytes(bytes, derived(key), place);
    if (text !== undefined) {
      return { text: secret(text), by };
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
