import { createHash, randomBytes } from "node:crypto";

/** Who signed in with the form: a token in a cookie, ended by signing out, after 12 h, and when the supervisor ends. */
export type Sessions = {
  /** A new session's token. */
  readonly begin: () => string;
  readonly isOpen: (token: string) => boolean;
  readonly end: (token: string) => void;
};

export const sessionSeconds = 12 * 3600;
export const cookieName = "hearth_session";
const mostSessions = 1000;

/** Keeps hashes only, in memory. `now` gives milliseconds since 1970. */
export function openSessions(now: () => number): Sessions {
  const ends = new Map<string, number>();
  return {
    begin: () => {
      const token = randomBytes(32).toString("base64url");
      for (const [known, end] of ends)
        if (end <= now() || ends.size >= mostSessions) ends.delete(known);
      ends.set(hashed(token), now() + sessionSeconds * 1000);
      return token;
    },
    isOpen: (token) => (ends.get(hashed(token)) ?? 0) > now(),
    end: (token) => {
      ends.delete(hashed(token));
    },
  };
}

function hashed(token: string): string {
  return createHash("sha256").update(token).digest("base64url");
}

/** The session's token of a Cookie header. */
export function tokenIn(cookies: string | undefined): string | undefined {
  return (cookies ?? "")
    .split(";")
    .map((each) => each.trim())
    .find((each) => each.startsWith(`${cookieName}=`))
    ?.slice(cookieName.length + 1);
}
