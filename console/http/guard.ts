import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { inWords } from "../../core/duration.ts";
import type { Notice } from "../pages/frame.ts";
import type { Access, Audience, Authenticator } from "./access.ts";
import { sendError } from "./send-error.ts";
import { showFailure } from "./show-page.ts";
import { showSignIn, wantsPage } from "./sign-in-routes.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** What the route requires; `operator` when left out. */
    audience?: Audience;
  }
  interface FastifyRequest {
    /** Authenticated by the cookie of a session. */
    signedIn: boolean;
    /** Above the page that answers this request. */
    notice: (() => Notice | null) | undefined;
    /** Allowed to see the state of the system. */
    isOperator: boolean;
  }
}

const FOREIGN_HOST =
  "Open this supervisor by IP address, local name, or the name set in SUPERVISOR_PUBLIC_URL.";

/** Denies requests that the audience of a route does not allow, and adds the security headers of all answers. */
export function guardRoutes(
  server: FastifyInstance,
  authenticator: Authenticator,
): void {
  server.decorateRequest("signedIn", false);
  server.decorateRequest("isOperator", false);
  server.decorateRequest("notice", undefined);
  server.addHook("onRequest", async (request, reply) => {
    const { audience = "operator" } = request.routeOptions.config;
    const access = authenticator.judge(request, audience);
    if (access.kind !== "allowed") {
      return deny(request, reply, access, audience);
    }
    request.signedIn = authenticator.isSignedIn(request);
    request.isOperator = audience === "operator";
  });
  server.addHook("onSend", async (_request, reply) => {
    reply.headers({
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      // Without it browsers also hide the origin of the console's own forms.
      "referrer-policy": "same-origin",
      "cache-control": "no-store",
    });
  });
}

function deny(
  request: FastifyRequest,
  reply: FastifyReply,
  access: Exclude<Access, { readonly kind: "allowed" }>,
  audience: Audience,
): FastifyReply | Promise<FastifyReply> {
  switch (access.kind) {
    case "foreign-page":
      return sendError(reply, 403, "cross-origin request denied.");
    case "foreign-host":
      return wantsPage(request)
        ? showFailure(request, reply, 403, [FOREIGN_HOST], "/")
        : sendError(reply, 403, FOREIGN_HOST);
    case "wait":
      return sendError(
        reply.header("retry-after", Math.ceil(access.ms / 1000)),
        429,
        `too many failed sign-in attempts; try again in ${inWords(access.ms)}.`,
      );
    case "unauthenticated":
      if (wantsPage(request)) {
        return showSignIn(request, reply, { status: 401, to: request.url });
      }
      return sendError(
        reply.header("www-authenticate", 'Basic realm="Hearth"'),
        401,
        audience === "metrics"
          ? "bearer token required; run `hearth operator metrics-token` to show it."
          : "sign in as user operator with the operator password; run `hearth operator password` to show it.",
      );
  }
}
