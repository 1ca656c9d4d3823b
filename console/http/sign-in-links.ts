import { keyedHash, newToken } from "../../supervisor/history/sessions.ts";

export interface SignInLink {
  readonly path: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

export const LINK_MINUTES = 10;
const MOST_LINKS = 100;

/**
 * Links that sign a browser in once, within ten minutes, so that no password has to be typed. Keeps hashes only, in memory, keyed
 * as those of sessions are.
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
      if (end <= this.#now() || ends.size >= MOST_LINKS) {
        ends.delete(known);
      }
    }
    const token = newToken();
    const expiresAt = this.#now() + LINK_MINUTES * 60_000;
    ends.set(keyedHash(this.#key(), token), expiresAt);
    return { path: `/sign-in/${token}`, expiresAt };
  }

  /** True once for each link that is not too old. */
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
