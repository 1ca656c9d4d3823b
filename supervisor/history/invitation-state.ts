import type { Invitation } from "./invitations.ts";

/** The state of an invitation at `now`, in milliseconds since 1970, and its words; `timeWords` writes a time for its reader. */
export function invitationState(
  { usedAt, revokedAt, expiresAt }: Invitation,
  now: number,
  timeWords: (at: number) => string,
): {
  readonly state: "accepted" | "revoked" | "expired" | "open";
  readonly words: string;
} {
  if (usedAt !== null) {
    return { state: "accepted", words: `accepted ${timeWords(usedAt)}` };
  }
  if (revokedAt !== null) {
    return { state: "revoked", words: "revoked" };
  }
  const time = timeWords(expiresAt);
  return expiresAt <= now
    ? { state: "expired", words: `expired ${time}` }
    : { state: "open", words: `open until ${time}` };
}
