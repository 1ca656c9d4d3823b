import { z } from "zod";
import { DAY_MS } from "../../../core/duration.ts";
import { duration } from "../../../supervisor/config/fields.ts";
import {
  Refusal,
  type AdminApi,
} from "../../../supervisor/gateway/admin-api.ts";
import { findTeamId } from "../../../supervisor/gateway/owners.ts";
import { actAs, withAuthor } from "../../../supervisor/history/author.ts";
import type { History } from "../../../supervisor/history/history.ts";
import type {
  Invitation,
  Invitations,
} from "../../../supervisor/history/invitations.ts";

/** What the routes and pages of invitations work with. */
export interface InvitationContext {
  readonly invitations: Invitations;
  /** The gateway, with the master key. */
  readonly api: AdminApi;
  readonly history: Pick<History, "act">;
}

const MAX_LIFETIME_MS = 30 * DAY_MS;

/** An invitation as a form or a command requests it. */
export const invitationRequest = z.strictObject({
  note: z
    .string()
    .trim()
    .max(100, "must be at most 100 characters")
    .default(""),
  team: z.string().trim().optional(),
  team_role: z.enum(["user", "admin"], "must be user or admin").default("user"),
  role: z
    .enum(
      ["internal_user", "internal_user_viewer"],
      "must be internal_user or internal_user_viewer",
    )
    .default("internal_user"),
  max_budget: z.coerce
    .number("must be a number, for example 5 or 0.5")
    .min(0, "must be at least 0 dollars")
    .optional(),
  expires_in: duration
    .prefault("7d")
    .refine((ms) => ms <= MAX_LIFETIME_MS, "must be at most 30d"),
});

type InvitationRequest = z.output<typeof invitationRequest>;

/** Creates an invitation, and records it with its author. Throws a Refusal for an unknown team. */
export async function invite(
  { invitations, api, history }: InvitationContext,
  request: InvitationRequest,
): Promise<{ readonly path: string; readonly invitation: Invitation }> {
  const { note, team, team_role, role, max_budget, expires_in } = request;
  const { token, invitation } = invitations.create(
    {
      note,
      teamId: team === undefined ? null : await findTeamId(api, team),
      teamName: team ?? null,
      teamRole: team_role,
      userRole: role,
      maxBudget: max_budget ?? null,
    },
    expires_in,
  );
  history.act(
    "invitations",
    "asked",
    withAuthor(`invitation ${invitation.id} created`),
  );
  return { path: `/invitation/${token}`, invitation };
}

/** Revokes an invitation that is not accepted yet. Throws a Refusal if there is none. */
export function revokeInvitation(
  { invitations, history }: InvitationContext,
  id: number,
): Invitation {
  const revoked = invitations.revoke(id);
  if (revoked === undefined) {
    throw new Refusal(
      "There is no open invitation of this number: it was accepted, has expired or was revoked.",
      404,
      null,
    );
  }
  history.act("invitations", "asked", withAuthor(`invitation ${id} revoked`));
  return revoked;
}

/**
 * Creates the user and its first key, and returns the gateway's answer, which has the secret; undefined for an invitation that is
 * not open. One that fails can be accepted again.
 */
export async function acceptInvitation(
  { invitations, api, history }: InvitationContext,
  token: string,
  name: string,
): Promise<unknown> {
  const invitation = invitations.take(token);
  if (invitation === undefined) {
    return undefined;
  }
  const author = `${name} (invitation ${invitation.id})`;
  return actAs(author, async () => {
    try {
      await createUser(api, invitation, name);
      const { userId, teamId } = invitation;
      const answer = await api.ask("POST", "/key/generate", {
        user_id: userId,
        ...(teamId === null ? {} : { team_id: teamId }),
      });
      history.act("invitations", "asked", withAuthor("invitation accepted"));
      return answer;
    } catch (error) {
      invitations.giveBack(invitation);
      throw error;
    }
  });
}

async function createUser(
  api: AdminApi,
  { userId, userRole, teamId, teamRole, maxBudget }: Invitation,
  name: string,
): Promise<void> {
  try {
    await api.ask("POST", "/user/new", {
      user_id: userId,
      user_alias: name,
      user_role: userRole,
      ...(maxBudget === null ? {} : { max_budget: maxBudget }),
      teams: teamId === null ? [] : [{ team_id: teamId, user_role: teamRole }],
      auto_create_key: false,
    });
  } catch (error) {
    // A former attempt created it, and was interrupted.
    if (!(error instanceof Refusal && error.status === 409)) {
      throw error;
    }
  }
}
