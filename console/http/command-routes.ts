import type { FastifyInstance, FastifyReply } from "fastify";
import { z } from "zod";
import { Failure } from "../../core/failure.ts";
import type { Role } from "../../supervisor/sign-in/roles.ts";
import {
  commandProviders,
  type CommandProvider,
} from "../sign-in/command-providers.ts";
import type { ProviderConfig } from "../../supervisor/sign-in/config.ts";
import { ProviderUnavailable } from "../sign-in/provider-errors.ts";
import type { UserSignIn } from "../sign-in/user-sign-in.ts";
import type { Authenticator } from "./access.ts";
import { sendError } from "./send-error.ts";

/** How commands sign in at this console. */
export interface CommandSignInView {
  readonly providers: readonly CommandProvider[];
}

/** A session of a user's commands; `token` is sent as `Authorization: Bearer`. */
interface CommandSessionView {
  readonly token: string;
  readonly name: string;
  readonly role: Role;
  /** Milliseconds since 1970. */
  readonly endsAt: number;
}

/** Who sends a request. */
export interface MeView {
  readonly name: string;
  readonly role: Role;
}

const tokens = z.object({
  provider: z.string(),
  idToken: z.string(),
  accessToken: z.string(),
});

/**
 * Sign-in of the command line, which gets tokens from the provider itself: GET /api/sign-in lists providers, POST exchanges a
 * provider's tokens for a session of the console, DELETE ends it; GET /api/me answers who the caller is.
 */
export function registerCommandRoutes(
  server: FastifyInstance,
  authenticator: Authenticator,
  users: UserSignIn,
  providers: readonly ProviderConfig[],
): void {
  server.get(
    "/api/sign-in",
    { exposeHeadRoute: false },
    (): CommandSignInView => ({ providers: commandProviders(providers) }),
  );
  server.post("/api/sign-in", async (request, reply) => {
    const sent = tokens.safeParse(request.body);
    if (!sent.success) {
      return sendError(
        reply,
        400,
        "send provider, idToken and accessToken as JSON.",
      );
    }
    try {
      const session: CommandSessionView = await users.exchange(sent.data);
      return await reply.send(session);
    } catch (error) {
      return sendProblem(reply, error);
    }
  });
  server.delete("/api/sign-in", async (request, reply) => {
    authenticator.endBearerSession(request);
    return reply.code(204).send();
  });
  server.get("/api/me", { exposeHeadRoute: false }, (request): MeView => {
    const { name, role } = request.requester ?? { name: "", role: "viewer" };
    return { name, role };
  });
}

function sendProblem(reply: FastifyReply, error: unknown): FastifyReply {
  if (!(error instanceof Failure)) {
    throw error;
  }
  return sendError(
    reply,
    error instanceof ProviderUnavailable ? 503 : 403,
    error.sentences.join(" "),
  );
}
