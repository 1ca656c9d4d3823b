import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { inWords } from "../../core/duration.ts";
import type { Access, Audience, Door } from "./access.ts";
import { refuse } from "./refuse.ts";
import { showFailure } from "./show-page.ts";
import { askToSignIn, wantsPage } from "./sign-in-routes.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** What the route requires; `operator` when left out. */
    audience?: Audience;
  }
  interface FastifyRequest {
    /** Came in by a session's cookie. */
    signedIn: boolean;
  }
}

const FOREIGN_HOST =
  "Browsers reach this supervisor under an IP address, a local name, or the name in SUPERVISOR_PUBLIC_URL, and no other.";

/** Answers every request that a route's audience does not allow, and sends the headers that protect all answers. */
export function guardRoutes(server: FastifyInstance, door: Door): void {
  server.decorateRequest("signedIn", false);
  server.addHook("onRequest", async (request, reply) => {
    const { audience = "operator" } = request.routeOptions.config;
    const access = door.judge(request, audience);
    if (access.kind !== "allowed") {
      return turnAway(request, reply, access, audience);
    }
    request.signedIn = door.isSignedIn(request);
  });
  server.addHook("onSend", async (_request, reply) => {
    reply.headers({
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      // Without it browsers hide the origin of our own forms too.
      "referrer-policy": "same-origin",
      "cache-control": "no-store",
    });
  });
}

function turnAway(
  request: FastifyRequest,
  reply: FastifyReply,
  access: Exclude<Access, { readonly kind: "allowed" }>,
  audience: Audience,
): FastifyReply | Promise<FastifyReply> {
  switch (access.kind) {
    case "foreign-page":
      return refuse(reply, 403, "a page of another origin may not do this.");
    case "foreign-host":
      return wantsPage(request)
        ? showFailure(request, reply, 403, [FOREIGN_HOST], "/")
        : refuse(reply, 403, FOREIGN_HOST);
    case "wait":
      return refuse(
        reply.header("retry-after", Math.ceil(access.ms / 1000)),
        429,
        `too many wrong passwords: try again in ${inWords(access.ms)}.`,
      );
    case "unauthenticated":
      if (wantsPage(request)) {
        return askToSignIn(request, reply, { status: 401, to: request.url });
      }
      return refuse(
        reply.header("www-authenticate", 'Basic realm="Hearth"'),
        401,
        audience === "metrics"
          ? "this needs the token that `hearth operator metrics-token` shows, as a bearer token."
          : "sign in as the user operator with the operator password: `hearth operator password` shows it.",
      );
  }
}
