import { keyedHash, newToken } from "../../supervisor/history/sessions.ts";

/** Links that sign a browser in once, within ten minutes, so that no password has to be typed. */
export interface SignInLinks {
  readonly make: () => SignInLink;
  /** True once for each link that is not too old. */
  readonly use: (token: string) => boolean;
  readonly endAll: () => void;
}

export interface SignInLink {
  readonly path: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

export const LINK_MINUTES = 10;
const MOST_LINKS = 100;

/** Keeps hashes only, in memory, keyed as those of sessions are. `now` gives milliseconds since 1970. */
export function openSignInLinks(
  key: () => string,
  now: () => number,
): SignInLinks {
  const ends = new Map<string, number>();
  return {
    make: () => {
      for (const [known, end] of ends) {
        if (end <= now() || ends.size >= MOST_LINKS) {
          ends.delete(known);
        }
      }
      const token = newToken();
      const expiresAt = now() + LINK_MINUTES * 60_000;
      ends.set(keyedHash(key(), token), expiresAt);
      return { path: `/sign-in/${token}`, expiresAt };
    },
    use: (token) => {
      const hash = keyedHash(key(), token);
      const end = ends.get(hash) ?? 0;
      ends.delete(hash);
      return end > now();
    },
    endAll: () => ends.clear(),
  };
}
