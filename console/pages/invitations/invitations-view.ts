import type { Look } from "../../../core/shapes.ts";
import { counted, moment, money, readable } from "../../../core/words.ts";
import type { Invitation } from "../../../supervisor/history/invitations.ts";
import { USER_ADDRESS } from "../nouns/user-address.ts";

interface At {
  /** IANA name. */
  readonly timeZone: string;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** What templates/invitations.eta shows of the invitations, the newest first. */
export function viewInvitations(all: readonly Invitation[], at: At) {
  const open = all.filter((each) => stateOf(each, at).isOpen).length;
  return {
    title:
      open === 0
        ? "No open invitations."
        : `${counted(open, "open invitation")}.`,
    rows: all.map((invitation) => viewInvitation(invitation, at)),
  };
}

function viewInvitation(invitation: Invitation, at: At) {
  const { id, note, userRole, teamId, teamRole, maxBudget } = invitation;
  const { isOpen, look, word } = stateOf(invitation, at);
  return {
    note: note === "" ? `invitation ${id}` : readable(note),
    look,
    state: word,
    user:
      invitation.usedAt === null ? null : USER_ADDRESS.href(invitation.userId),
    team: readable(invitation.teamName ?? "none"),
    role: [
      userRole === "internal_user_viewer" ? "viewer of own keys" : "user",
      ...(teamId !== null && teamRole === "admin" ? ["admin of the team"] : []),
    ].join(", "),
    budget: maxBudget === null ? "no budget" : money(maxBudget),
    created: `${moment(invitation.createdAt, at.timeZone)} by ${readable(invitation.createdBy)}`,
    revoke: isOpen
      ? {
          verb: "Revoke",
          action: `/invitations/${id}/revoke`,
          question: "Make the link invalid?",
          destroys: true,
        }
      : null,
  };
}

function stateOf(
  { usedAt, revokedAt, expiresAt }: Invitation,
  { timeZone, now }: At,
): { readonly isOpen: boolean; readonly look: Look; readonly word: string } {
  if (usedAt !== null) {
    const word = `accepted ${moment(usedAt, timeZone)}`;
    return { isOpen: false, look: "ok", word };
  }
  if (revokedAt !== null) {
    return { isOpen: false, look: "rest", word: "revoked" };
  }
  const until = moment(expiresAt, timeZone);
  return expiresAt <= now
    ? { isOpen: false, look: "rest", word: `expired ${until}` }
    : { isOpen: true, look: "none", word: `open until ${until}` };
}
