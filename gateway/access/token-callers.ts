import type { KeyCaller } from "./callers.ts";

/** Callers with a token of a trusted issuer instead of a key. */
export interface TokenCallers {
  /**
   * The caller with a token, whose SHA-256 is `hash`. Throws 401 for an invalid token, 403 for one that names unknown payers, and
   * 503 while its issuer's keys, or the payers of a new token, are unavailable.
   */
  find(token: string, hash: string): Promise<KeyCaller>;
  /** The hash of the key of a token that was verified, however long ago; undefined for others. */
  keyOf(hash: string): string | undefined;
}
