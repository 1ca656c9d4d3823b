import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { inWords } from "../../../core/duration.ts";
import { Failure } from "../../../core/failure.ts";
import { Attempts } from "../../http/attempts.ts";
import { readForm } from "../../http/forms.ts";
import { showFailure, showPage } from "../../http/show-page.ts";
import { showSecret } from "../nouns/key-secret.ts";
import type { NounContext } from "../nouns/noun-context.ts";
import { acceptInvitation, type InvitationContext } from "./invite.ts";

interface LinkRequest {
  readonly Params: { readonly token: string };
}

const form = z.object({
  name: z
    .string("Name is required.")
    .transform((text) => text.replace(/\p{C}/gu, "").trim())
    .refine((text) => text !== "", "Name is required.")
    .refine((text) => text.length <= 100, "Must be at most 100 characters."),
});

/** The same for a link that is unknown, used, expired or revoked. */
const INVALID =
  "This invitation is not valid: it was accepted, has expired or was revoked. Ask the person who sent it for a new one.";

/**
 * GET /invitation/:token shows the form and changes nothing, because programs open links in mails, too; POST creates the user and
 * shows the first key.
 */
export function registerAcceptPage(
  server: FastifyInstance,
  invitation: InvitationContext,
  context: NounContext,
  now: () => number,
): void {
  const attempts = new Attempts(now);
  const route = "/invitation/:token";
  server.get<LinkRequest>(route, (request, reply) =>
    limited(request, reply, attempts, async () => {
      const { token } = request.params;
      const isValid = invitation.invitations.find(token) !== undefined;
      if (isValid) {
        await showForm(request, reply, {});
      }
      return isValid;
    }),
  );
  server.post<LinkRequest>(route, (request, reply) =>
    limited(request, reply, attempts, () =>
      accept(request, reply, invitation, context),
    ),
  );
}

/** `act` answers and returns true, or returns false for a link that is not valid. Guesses are limited by address, apart from those of the password. */
async function limited(
  request: FastifyRequest,
  reply: FastifyReply,
  attempts: Attempts,
  act: () => Promise<boolean>,
): Promise<FastifyReply> {
  const wait = attempts.waitOf(request.ip);
  if (wait > 0) {
    return showFailure(
      request,
      reply.header("retry-after", Math.ceil(wait / 1000)),
      429,
      [`Too many invalid links. Try again in ${inWords(wait)}.`],
      "/",
    );
  }
  if (await act()) {
    return reply;
  }
  attempts.failed(request.ip);
  return showFailure(request, reply, 404, [INVALID], "/");
}

async function accept(
  request: FastifyRequest<LinkRequest>,
  reply: FastifyReply,
  invitation: InvitationContext,
  context: NounContext,
): Promise<boolean> {
  const { token } = request.params;
  if (invitation.invitations.find(token) === undefined) {
    return false;
  }
  const read = readForm(request, form);
  if (read.kind === "mistakes") {
    await showForm(request, reply, read.mistakes);
    return true;
  }
  try {
    const answer = await acceptInvitation(invitation, token, read.value.name);
    if (answer === undefined) {
      return false;
    }
    await showSecret(request, reply, context, answer, null);
  } catch (error) {
    if (!(error instanceof Failure)) {
      throw error;
    }
    await showForm(request, reply, {
      name: `${error.sentences.join(" ")} The invitation stays valid: try again later, or ask the person who sent it.`,
    });
  }
  return true;
}

function showForm(
  request: FastifyRequest<LinkRequest>,
  reply: FastifyReply,
  mistakes: Readonly<Record<string, string>>,
): Promise<FastifyReply> {
  const mistake = mistakes["name"];
  const { name } = (request.body ?? {}) as { readonly name?: unknown };
  return showPage(
    request,
    reply,
    {
      title: "You are invited.",
      look: mistake === undefined ? "none" : "warn",
      current: null,
      status: mistake === undefined ? 200 : 400,
    },
    "invitation",
    {
      action: `/invitation/${request.params.token}`,
      field: {
        name: "name",
        label: "Your name",
        note: "Shown to the admins of this gateway.",
        kind: "text",
        needed: true,
        mistake,
        value: typeof name === "string" ? name : "",
      },
    },
  );
}
