import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { recordOf, textOf } from "../../core/json.ts";
import { inWords } from "../../core/duration.ts";
import { cookieNameOf, type Authenticator, type SignIn } from "./access.ts";
import { SESSION_SECONDS } from "../../supervisor/history/sessions.ts";
import { keptFormIn, type KeptForm } from "./kept-form.ts";
import { showPage } from "./show-page.ts";
import { LINK_MINUTES } from "./sign-in-links.ts";

/** The link that `hearth open` prints. */
export interface SignInLinkView {
  readonly path: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
  /** Where browsers reach this supervisor; null if unknown. */
  readonly publicUrl: string | null;
}

interface LinkRequest {
  readonly Params: { readonly token: string };
}

/**
 * POST /sign-in (a form: password, to, form), GET /sign-in/:token (a link), POST /sign-out (this browser, and its provider); for commands POST
 * /api/sign-in-links (a new link) and POST /api/sign-out-all (every browser).
 */
export function registerSignInRoutes(
  server: FastifyInstance,
  authenticator: Authenticator,
): void {
  server.post("/sign-in", (request, reply) =>
    signInByPassword(request, reply, authenticator),
  );
  server.get<LinkRequest>(
    "/sign-in/:token",
    { exposeHeadRoute: false },
    (request, reply) => signInByLink(request, reply, authenticator),
  );
  server.post("/sign-out", (request, reply) =>
    signOut(request, reply, authenticator),
  );
  server.post("/api/sign-in-links", (_request, reply): FastifyReply =>
    reply.code(201).send({
      ...authenticator.makeLink(),
      publicUrl: server.publicUrl,
    } satisfies SignInLinkView),
  );
  server.post("/api/sign-out-all", () => ({
    ended: authenticator.signOutAll(),
  }));
}

async function signOut(
  request: FastifyRequest,
  reply: FastifyReply,
  authenticator: Authenticator,
): Promise<FastifyReply> {
  const returnTo = `${originOf(request)}/`;
  const next = await authenticator.signOut(request, returnTo);
  reply.header("set-cookie", sessionCookie(request, "", 0));
  if (next === undefined) {
    return reply.redirect("/", 303);
  }
  request.signedIn = false;
  request.requester = null;
  // The policy of the pages allows no redirect of a form to another origin.
  return showPage(
    request,
    reply.header("refresh", `0; url=${next}`),
    { title: "Signed out.", look: "ok", current: null },
    "signed-out",
    { next },
  );
}

async function signInByPassword(
  request: FastifyRequest,
  reply: FastifyReply,
  authenticator: Authenticator,
): Promise<FastifyReply> {
  const to = redirectTarget(fieldOf(request, "to"));
  const form = keptFormIn(fieldOf(request, "form"));
  const result = authenticator.signIn(request, fieldOf(request, "password"));
  switch (result.kind) {
    case "open":
      reply.header(
        "set-cookie",
        sessionCookie(request, result.token, SESSION_SECONDS),
      );
      return form === null
        ? reply.redirect(to, 303)
        : showPage(
            request,
            reply,
            { title: "Signed in.", look: "ok", current: null },
            "signed-in",
            { to, form },
          );
    case "wrong":
      return showSignIn(request, reply, {
        status: 401,
        to,
        mistake: mistakeOf(result),
        form,
      });
    case "wait":
      return showSignIn(
        request,
        reply.header("retry-after", Math.ceil(result.ms / 1000)),
        { status: 429, to, mistake: mistakeOf(result), form },
      );
  }
}

async function signInByLink(
  request: FastifyRequest<LinkRequest>,
  reply: FastifyReply,
  authenticator: Authenticator,
): Promise<FastifyReply> {
  if (isPreview(request)) {
    return reply.code(204).send();
  }
  const token = authenticator.signInByLink(request, request.params.token);
  if (token !== undefined) {
    return showSignedIn(request, reply, { token, seconds: SESSION_SECONDS });
  }
  if (request.signedIn) {
    return reply.redirect("/", 303);
  }
  return showSignIn(request, reply, {
    status: 401,
    to: "/",
    note: `This link was already used or is older than ${LINK_MINUTES} minutes. Run \`${request.server.hearth} open\` for a new one.`,
  });
}

/**
 * Signs in the browser and continues from a page of the console: after a link in a mail or a chat, or from a provider, a redirect
 * would still count as cross-site, and the browser would not send the cookie.
 */
export async function showSignedIn(
  request: FastifyRequest,
  reply: FastifyReply,
  {
    token,
    seconds,
    to = "/",
  }: {
    readonly token: string;
    readonly seconds: number;
    /** A path of the console. */
    readonly to?: string;
  },
): Promise<FastifyReply> {
  return showPage(
    request,
    reply
      .header("set-cookie", sessionCookie(request, token, seconds))
      .header("refresh", `0; url=${to}`),
    { title: "Signed in.", look: "ok", current: null },
    "signed-in",
    { to, form: null },
  );
}

/** The sign-in form in place of the requested page. */
export async function showSignIn(
  request: FastifyRequest,
  reply: FastifyReply,
  {
    status,
    to,
    mistake = null,
    note = null,
    form = null,
  }: {
    readonly status: number;
    readonly to: string;
    /** Why the password was rejected. */
    readonly mistake?: string | null;
    readonly note?: string | null;
    /** To be sent again after the sign-in. */
    readonly form?: KeptForm | null;
  },
): Promise<FastifyReply> {
  return showPage(
    request,
    reply,
    { title: "Sign in", look: "none", current: null, status },
    "sign-in",
    {
      to,
      mistake,
      note,
      form,
      days: SESSION_SECONDS / 86_400,
      isProject: request.server.hearth === "npx hearth",
      providers: request.server.providers().map(({ name, title, trouble }) => ({
        title,
        trouble,
        href: `/sign-in/with/${name}?${new URLSearchParams({ to }).toString()}`,
      })),
    },
  );
}

/** Why the password was rejected. */
function mistakeOf(result: Exclude<SignIn, { readonly kind: "open" }>): string {
  return result.kind === "wrong"
    ? "Incorrect password."
    : `Too many failed attempts. Try again in ${inWords(result.ms)}.`;
}

/** Whether a browser opens a page or sends a form, rather than a program requests data. */
export function wantsPage(request: FastifyRequest): boolean {
  return (
    !request.url.startsWith("/api/") &&
    (request.headers.accept ?? "").includes("text/html")
  );
}

/** A prefetch must not use up a link. */
export function isPreview({ headers }: FastifyRequest): boolean {
  return [headers["sec-purpose"], headers["purpose"], headers["x-moz"]].some(
    (purpose) => String(purpose).startsWith("prefetch"),
  );
}

/** Only paths of the console: no other host, no scheme, no sign-in link. */
export function redirectTarget(text: string): string {
  return /^\/(?![/\\]|sign-in\/)[\x21-\x7e]*$/.test(text) ? text : "/";
}

export function fieldOf(request: FastifyRequest, name: string): string {
  return textOf(recordOf(request.body)[name]);
}

function sessionCookie(
  request: FastifyRequest,
  token: string,
  seconds: number,
): string {
  return cookie(request, {
    name: cookieNameOf(request),
    value: token,
    seconds,
    sameSite: "Strict",
  });
}

/** A cookie that scripts cannot read, for https only if the page is. */
export function cookie(
  request: FastifyRequest,
  {
    name,
    value,
    seconds,
    sameSite,
  }: {
    readonly name: string;
    readonly value: string;
    readonly seconds: number;
    readonly sameSite: "Strict" | "Lax";
  },
): string {
  return `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=${sameSite}${isHttps(request) ? "; Secure" : ""}`;
}

/** Where the browser of a request, which has one of the supervisor's own names, reaches this console. */
export function originOf(request: FastifyRequest): string {
  return (
    request.server.publicUrl ??
    `${isHttps(request) ? "https" : "http"}://${request.headers.host ?? ""}`
  );
}

/** According to the configured address, the proxy or the browser. A forged header only makes the sender's own cookie stricter. */
function isHttps({ headers, server }: FastifyRequest): boolean {
  const { publicUrl } = server;
  if (publicUrl !== null && new URL(publicUrl).host === headers.host) {
    return publicUrl.startsWith("https:");
  }
  const [forwarded = ""] = String(headers["x-forwarded-proto"]).split(",");
  return (
    forwarded.trim() === "https" ||
    /(^|[;,\s])proto="?https/i.test(headers.forwarded ?? "") ||
    (headers.origin ?? "").startsWith("https:")
  );
}
