import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { inWords, MINUTE_MS } from "../../core/duration.ts";
import { actAs, OPERATOR } from "../../supervisor/history/author.ts";
import type { Role } from "../../supervisor/sign-in/roles.ts";
import { OWN_PAGE_PATH, type Notice } from "../pages/frame.ts";
import type { Caller } from "../sign-in/user-sign-in.ts";
import type { Access, Authenticator } from "./access.ts";
import { FORM_TYPE } from "./forms.ts";
import { keepForm } from "./kept-form.ts";
import { pageBefore } from "./page-before.ts";
import { requirementOf, type Requirement } from "./route-roles.ts";
import { sendError } from "./send-error.ts";
import { showFailure } from "./show-page.ts";
import { showSignIn, wantsPage } from "./sign-in-routes.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Authenticated by the cookie of a session. */
    signedIn: boolean;
    /** A form without a session: denied when its input is read, which the sign-in page keeps. */
    sentTooLate: boolean;
    /** Above the page that answers this request. */
    notice: (() => Notice | null) | undefined;
    /** Who makes the request; null where the route does not ask for a role. */
    requester: Caller | null;
  }
}

const FOREIGN_HOST =
  "Open this supervisor by IP address, local name, or the name set in SUPERVISOR_PUBLIC_URL.";

/** The header of requests of the pages' own scripts whose answers are not pages. */
const OF_SCRIPT = "x-requested-with";

/** In bytes: a form, or a provider's tokens. Anybody can send many at once, which are in memory until they are complete. */
const MAX_OPEN_BODY = 65_536;

/** In which a request without credentials must arrive. The copy of a backup, with credentials, may take hours. */
const ARRIVAL_MS = MINUTE_MS;

const SESSION_ENDED = "Your session has ended; nothing was changed.";
const SESSION_ENDED_MEANWHILE =
  "Your session has ended: sign in in another tab, then try again.";

/**
 * Denies requests for which the caller lacks the role of a route, and adds the security headers of all answers. Routes that are
 * registered later and open to anybody take short bodies only.
 */
export function guardRoutes(
  server: FastifyInstance,
  authenticator: Authenticator,
  arrivalMs = ARRIVAL_MS,
): void {
  server.decorateRequest("signedIn", false);
  server.decorateRequest("sentTooLate", false);
  server.decorateRequest("requester", null);
  server.decorateRequest("notice", undefined);
  server.addHook("onRoute", (route) => {
    const [method = ""] = [route.method].flat();
    if (isOpen(requirementOf(method, route.url))) {
      route.bodyLimit = MAX_OPEN_BODY;
    }
  });
  server.addHook("onRequest", async (request, reply) => {
    const { method, routeOptions } = request;
    const requirement = requirementOf(method, routeOptions.url);
    const access = await authenticator.judge(request, requirement);
    if (access.kind !== "allowed" || access.caller === null) {
      endUnlessComplete(request, arrivalMs);
    }
    if (access.kind === "unauthenticated" && isForm(request)) {
      request.sentTooLate = true;
      return;
    }
    if (access.kind !== "allowed") {
      return deny(request, reply, access, requirement);
    }
    request.signedIn = access.signedIn;
    request.requester = access.caller;
  });
  server.addHook("preHandler", async (request, reply) =>
    request.sentTooLate ? askToSendAgain(request, reply) : undefined,
  );
  // Not in the hook above: reading the body would lose the author.
  server.addHook("preHandler", ({ requester }, _reply, done) =>
    actAs(requester?.name ?? OPERATOR, done),
  );
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

/** Incomplete requests would occupy the connections of everybody else. */
function endUnlessComplete({ raw }: FastifyRequest, ms: number): void {
  const overdue = setTimeout(() => {
    if (!raw.complete) {
      raw.destroy();
    }
  }, ms).unref();
  raw.once("close", () => clearTimeout(overdue));
}

function isOpen(requirement: Requirement): boolean {
  return requirement === "public" || requirement === "sign-in";
}

function deny(
  request: FastifyRequest,
  reply: FastifyReply,
  access: Exclude<Access, { readonly kind: "allowed" }>,
  requirement: Requirement,
): FastifyReply | Promise<FastifyReply> {
  switch (access.kind) {
    case "foreign-page":
      return sendError(reply, 403, "cross-origin request denied.");
    case "foreign-host":
      return wantsPage(request)
        ? showFailure(request, reply, 403, [FOREIGN_HOST], "/")
        : sendError(reply, 403, FOREIGN_HOST);
    case "forbidden":
      return forbid(request, reply, access.caller, access.needed);
    case "wait":
      return sendError(
        reply.header("retry-after", Math.ceil(access.ms / 1000)),
        429,
        `too many failed sign-in attempts; try again in ${inWords(access.ms)}.`,
      );
    case "unauthenticated":
      if (wantsPage(request)) {
        return request.method === "POST"
          ? askToSendAgain(request, reply)
          : showSignIn(request, reply, { status: 401, to: request.url });
      }
      // A challenge would open a dialog of the browser over the page.
      if (request.headers[OF_SCRIPT] !== undefined) {
        return sendError(reply, 401, SESSION_ENDED_MEANWHILE);
      }
      return sendError(
        reply.header("www-authenticate", 'Basic realm="Hearth"'),
        401,
        requirement === "metrics"
          ? "bearer token required; run `hearth operator metrics-token` to show it."
          : "sign in as user operator with the operator password; run `hearth operator password` to show it.",
      );
  }
}

/** Whether a browser sends a form that can be sent again from another page: one without files. */
function isForm(request: FastifyRequest): boolean {
  const type = request.headers["content-type"] ?? "";
  return wantsPage(request) && type.startsWith(FORM_TYPE);
}

function askToSendAgain(
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const form = request.sentTooLate ? keepForm(request) : null;
  const advice =
    form === null
      ? "To keep your input, sign in in another tab, then reload this page."
      : "Sign in to send your input again.";
  return showSignIn(request, reply, {
    status: 401,
    to: pageBefore(request),
    note: `${SESSION_ENDED} ${advice}`,
    form,
  });
}

/** The answer to a signed-in user without the role. */
function forbid(
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Caller,
  needed: Role,
): FastifyReply | Promise<FastifyReply> {
  request.signedIn = true;
  request.requester = caller;
  if (caller.role === "user" && request.url === "/" && wantsPage(request)) {
    return reply.redirect(OWN_PAGE_PATH, 303);
  }
  const sentence = `This requires the role ${needed}; ${caller.name} has the role ${caller.role}. Ask an admin of this console for it, or sign in with the operator password.`;
  return wantsPage(request)
    ? showFailure(request, reply, 403, [sentence], "/")
    : sendError(reply, 403, sentence);
}
