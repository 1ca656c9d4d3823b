import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { inWords } from "../../core/duration.ts";
import { cookieNameOf, type Door, type SignIn } from "./access.ts";
import { SESSION_SECONDS } from "../../supervisor/history/sessions.ts";
import { showPage } from "./show-page.ts";
import { LINK_MINUTES } from "./sign-in-links.ts";

/** What `hearth open` prints as an address. */
export interface SignInLinkView {
  readonly path: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
  /** Where browsers reach this supervisor; null when it is not known. */
  readonly publicUrl: string | null;
}

const AT_THE_DOOR = { config: { audience: "sign-in" } } as const;

interface LinkRequest {
  readonly Params: { readonly token: string };
}

/**
 * POST /sign-in (a form: password, to), GET /sign-in/:token (a link), POST /sign-out (this browser); for commands POST
 * /api/sign-in-links (a new link) and POST /api/sign-out-all (every browser).
 */
export function registerSignInRoutes(
  server: FastifyInstance,
  door: Door,
  publicUrl: string | undefined,
): void {
  server.post("/sign-in", AT_THE_DOOR, (request, reply) =>
    signInByPassword(request, reply, door),
  );
  server.get<LinkRequest>(
    "/sign-in/:token",
    { ...AT_THE_DOOR, exposeHeadRoute: false },
    (request, reply) => signInByLink(request, reply, door),
  );
  server.post("/sign-out", (request, reply) => {
    door.signOut(request);
    return reply
      .header("set-cookie", cookie(request, "", 0))
      .redirect("/", 303);
  });
  server.post("/api/sign-in-links", (_request, reply): FastifyReply =>
    reply.code(201).send({
      ...door.makeLink(),
      publicUrl: publicUrl ?? null,
    } satisfies SignInLinkView),
  );
  server.post("/api/sign-out-all", () => ({ ended: door.signOutAll() }));
}

async function signInByPassword(
  request: FastifyRequest,
  reply: FastifyReply,
  door: Door,
): Promise<FastifyReply> {
  const to = placeOf(fieldOf(request, "to"));
  const result = door.signIn(request, fieldOf(request, "password"));
  switch (result.kind) {
    case "open":
      return reply
        .header("set-cookie", cookie(request, result.token, SESSION_SECONDS))
        .redirect(to, 303);
    case "wrong":
      return askToSignIn(request, reply, {
        status: 401,
        to,
        mistake: mistakeOf(result),
      });
    case "wait":
      return askToSignIn(
        request,
        reply.header("retry-after", Math.ceil(result.ms / 1000)),
        { status: 429, to, mistake: mistakeOf(result) },
      );
  }
}

async function signInByLink(
  request: FastifyRequest<LinkRequest>,
  reply: FastifyReply,
  door: Door,
): Promise<FastifyReply> {
  if (isPreview(request)) {
    return reply.code(204).send();
  }
  const token = door.signInByLink(request.params.token);
  if (token !== undefined) {
    return greet(request, reply, token);
  }
  if (door.isSignedIn(request)) {
    return reply.redirect("/", 303);
  }
  return askToSignIn(request, reply, {
    status: 401,
    to: "/",
    note: `This link was used already or is older than ${LINK_MINUTES} minutes. \`hearth open\` prints a new one.`,
  });
}

/**
 * Signs the browser in and leads it on from a page of ours: where the link stood in a mail or a chat, a redirect would still
 * count as coming from there, and the browser would keep the cookie back.
 */
async function greet(
  request: FastifyRequest,
  reply: FastifyReply,
  token: string,
): Promise<FastifyReply> {
  return showPage(
    request,
    reply
      .header("set-cookie", cookie(request, token, SESSION_SECONDS))
      .header("refresh", "0; url=/"),
    { title: "Signed in.", look: "ok", current: null },
    "signed-in",
    {},
  );
}

/** The form instead of what was asked for. */
export async function askToSignIn(
  request: FastifyRequest,
  reply: FastifyReply,
  {
    status,
    to,
    mistake = null,
    note = null,
  }: {
    readonly status: number;
    readonly to: string;
    /** What is wrong with the password. */
    readonly mistake?: string | null;
    readonly note?: string | null;
  },
): Promise<FastifyReply> {
  return showPage(
    request,
    reply,
    { title: "Sign in", look: "none", current: null, status },
    "sign-in",
    { to, mistake, note, days: SESSION_SECONDS / 86_400 },
  );
}

/** Why a password was not accepted. */
function mistakeOf(result: Exclude<SignIn, { readonly kind: "open" }>): string {
  return result.kind === "wrong"
    ? "That is not the password."
    : `Too many wrong passwords: try again in ${inWords(result.ms)}.`;
}

/** Whether a person with a browser asks for a page, and not a program for data. */
export function wantsPage(request: FastifyRequest): boolean {
  return (
    request.method === "GET" &&
    !request.url.startsWith("/api/") &&
    (request.headers.accept ?? "").includes("text/html")
  );
}

/** A link must not be used up by a browser or program that fetches it in advance. */
function isPreview({ headers }: FastifyRequest): boolean {
  return [headers["sec-purpose"], headers["purpose"], headers["x-moz"]].some(
    (purpose) => String(purpose).startsWith("prefetch"),
  );
}

/** Only places of our own: no other host, no scheme. A link to sign in leads nowhere a second time. */
function placeOf(text: string): string {
  return /^\/(?![/\\]|sign-in\/)[\x21-\x7e]*$/.test(text) ? text : "/";
}

function fieldOf(request: FastifyRequest, name: string): string {
  const { body } = request;
  const value: unknown =
    typeof body === "object" && body !== null
      ? Reflect.get(body, name)
      : undefined;
  return typeof value === "string" ? value : "";
}

function cookie(
  request: FastifyRequest,
  token: string,
  seconds: number,
): string {
  return `${cookieNameOf(request)}=${token}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${isHttps(request) ? "; Secure" : ""}`;
}

/** According to the proxy in front, or to the browser itself. A forged header only makes the sender's own cookie stricter. */
function isHttps({ headers }: FastifyRequest): boolean {
  const [forwarded = ""] = String(headers["x-forwarded-proto"]).split(",");
  return (
    forwarded.trim() === "https" ||
    /(^|[;,\s])proto="?https/i.test(headers.forwarded ?? "") ||
    (headers.origin ?? "").startsWith("https:")
  );
}
