import { counted, momentFrom, money, readable } from "../../../core/words.ts";
import { invitationState } from "../../../supervisor/history/invitation-state.ts";
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
  const rows = all.map((invitation) => viewInvitation(invitation, at));
  const open = rows.filter(({ revoke }) => revoke !== null).length;
  return {
    title:
      open === 0
        ? "No open invitations."
        : `${counted(open, "open invitation")}.`,
    rows,
  };
}

const LOOKS = {
  accepted: "ok",
  revoked: "rest",
  expired: "rest",
  open: "none",
} as const;

function viewInvitation(invitation: Invitation, { timeZone, now }: At) {
  const { id, note, userRole, teamId, teamRole, maxBudget } = invitation;
  const { state, words } = invitationState(invitation, now, (time) =>
    momentFrom(now, time, timeZone),
  );
  return {
    note: note === "" ? `invitation ${id}` : readable(note),
    look: LOOKS[state],
    state: words,
    user:
      invitation.usedAt === null ? null : USER_ADDRESS.href(invitation.userId),
    team: readable(invitation.teamName ?? "none"),
    role: [
      userRole === "internal_user_viewer" ? "viewer of own keys" : "user",
      ...(teamId !== null && teamRole === "admin" ? ["admin of the team"] : []),
    ].join(", "),
    budget: maxBudget === null ? "no budget" : money(maxBudget),
    created: `${momentFrom(now, invitation.createdAt, timeZone)} by ${readable(invitation.createdBy)}`,
    revoke:
      state === "open"
        ? {
            verb: "Revoke",
            action: `/invitations/${id}/revoke`,
            question: "Make the link invalid?",
            destroys: true,
          }
        : null,
  };
}
