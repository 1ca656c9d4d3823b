import type { FastifyInstance } from "fastify";
import type { Failure } from "../../core/failure.ts";
import { Refusal } from "../../supervisor/gateway/admin-api.ts";
import type { Invitation } from "../../supervisor/history/invitations.ts";
import {
  invitationRequest,
  invite,
  revokeInvitation,
  type InvitationContext,
} from "../pages/invitations/invite.ts";
import { sendMistakes, sendResult } from "./send-error.ts";

/** The link that `hearth users invite` prints. */
export interface InvitationLink {
  readonly path: string;
  readonly invitation: Invitation;
  /** Where browsers reach this supervisor; null if unknown. */
  readonly publicUrl: string | null;
}

/** GET, POST /api/invitations; DELETE /api/invitations/:id. */
export function registerInvitationRoutes(
  server: FastifyInstance,
  context: InvitationContext,
): void {
  server.get("/api/invitations", () => ({
    invitations: context.invitations.list(),
  }));
  server.post("/api/invitations", (request, reply) => {
    const parsed = invitationRequest.safeParse(request.body ?? {});
    if (!parsed.success) {
      return sendMistakes(reply, parsed.error);
    }
    return sendResult(reply.code(201), statusOfInvitationFailure, async () => {
      const created = await invite(context, parsed.data);
      const link: InvitationLink = { ...created, publicUrl: server.publicUrl };
      return link;
    });
  });
  server.delete<{ Params: { readonly id: string } }>(
    "/api/invitations/:id",
    (request, reply) =>
      sendResult(reply, statusOfInvitationFailure, () => ({
        revoked: revokeInvitation(context, Number(request.params.id)),
      })),
  );
}

/** The HTTP status of a Failure, such as a Refusal for an unknown team. */
function statusOfInvitationFailure(error: Failure): number {
  return error instanceof Refusal ? error.status : 502;
}
