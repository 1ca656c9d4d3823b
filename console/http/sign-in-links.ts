import { MINUTE_MS } from "../../core/duration.ts";
import { keyedHash, newToken } from "../../supervisor/history/sessions.ts";

export interface SignInLink {
  readonly path: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

export const LINK_MINUTES = 10;
const MAX_LINKS = 100;

/**
 * Links that sign in a browser once, within ten minutes, without a password. Stores hashes only, in memory, keyed
 * like those of sessions.
 */
export class SignInLinks {
  readonly #key: () => string;
  readonly #now: () => number;
  readonly #ends = new Map<string, number>();

  /** `now` gives milliseconds since 1970. */
  constructor(key: () => string, now: () => number) {
    this.#key = key;
    this.#now = now;
  }

  make(): SignInLink {
    const ends = this.#ends;
    for (const [known, end] of ends) {
      if (end <= this.#now() || ends.size >= MAX_LINKS) {
        ends.delete(known);
      }
    }
    const token = newToken();
    const expiresAt = this.#now() + LINK_MINUTES * MINUTE_MS;
    ends.set(keyedHash(this.#key(), token), expiresAt);
    return { path: `/sign-in/${token}`, expiresAt };
  }

  /** True once for each link that has not expired. */
  use(token: string): boolean {
    const hash = keyedHash(this.#key(), token);
    const end = this.#ends.get(hash) ?? 0;
    this.#ends.delete(hash);
    return end > this.#now();
  }

  endAll(): void {
    this.#ends.clear();
  }
}
