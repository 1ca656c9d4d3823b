import type { FastifyInstance, FastifyReply } from "fastify";
import { Refusal } from "../../supervisor/gateway/admin-api.ts";
import type { Invitation } from "../../supervisor/history/invitations.ts";
import {
  invitationRequest,
  invite,
  revokeInvitation,
  type InvitationContext,
} from "../pages/invitations/invite.ts";
import { sendError, sendMistakes } from "./send-error.ts";

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
  server.post("/api/invitations", (request, reply) =>
    answering(reply, async () => {
      const parsed = invitationRequest.safeParse(request.body ?? {});
      if (!parsed.success) {
        return sendMistakes(reply, parsed.error);
      }
      const created = await invite(context, parsed.data);
      const link: InvitationLink = { ...created, publicUrl: server.publicUrl };
      return reply.code(201).send(link);
    }),
  );
  server.delete<{ Params: { readonly id: string } }>(
    "/api/invitations/:id",
    (request, reply) =>
      answering(reply, async () =>
        reply.send({
          revoked: revokeInvitation(context, Number(request.params.id)),
        }),
      ),
  );
}

/** A refusal, such as of an unknown team, with its own status. */
async function answering(
  reply: FastifyReply,
  act: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof Refusal)) {
      throw error;
    }
    return sendError(reply, error.status, error.sentences.join(" "));
  }
}
