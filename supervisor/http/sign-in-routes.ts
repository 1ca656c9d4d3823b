import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { inWords } from "../duration.ts";
import type { Door, PasswordTrial } from "./access.ts";
import { cookieName, sessionSeconds } from "./sessions.ts";
import { showPage } from "./show-page.ts";

/** POST /sign-in (a form: password, to) and POST /sign-out. */
export function registerSignInRoutes(
  server: FastifyInstance,
  door: Door,
): void {
  server.post(
    "/sign-in",
    { config: { open: true } },
    async (request, reply) => {
      const to = placeOf(fieldOf(request, "to"));
      const result = door.signIn(request, fieldOf(request, "password"));
      switch (result.kind) {
        case "open":
          return reply
            .header("set-cookie", cookie(request, result.token, sessionSeconds))
            .redirect(to, 303);
        case "wrong":
          return askToSignIn(request, reply, 401, to, refusalOf(result));
        case "wait":
          return askToSignIn(
            request,
            reply.header("retry-after", Math.ceil(result.ms / 1000)),
            429,
            to,
            refusalOf(result),
          );
      }
    },
  );
  server.post("/sign-out", (request, reply) => {
    door.signOut(request);
    return reply
      .header("set-cookie", cookie(request, "", 0))
      .redirect("/", 303);
  });
}

/** The form instead of what was asked for. */
export async function askToSignIn(
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  to: string,
  mistake: string | null,
): Promise<FastifyReply> {
  return showPage(
    request,
    reply,
    { title: "Sign in", look: "none", current: null, status },
    "sign-in",
    { to, mistake },
  );
}

/** What is said to somebody whose password was not taken. */
export function refusalOf(
  trial: Exclude<PasswordTrial, { readonly kind: "right" }>,
): string {
  return trial.kind === "wrong"
    ? "That is not the password."
    : `Too many wrong passwords: try again in ${inWords(trial.ms)}.`;
}

/** Whether a person with a browser asks for a page, and not a program for data. */
export function wantsPage(request: FastifyRequest): boolean {
  return (
    request.method === "GET" &&
    !request.url.startsWith("/api/") &&
    (request.headers.accept ?? "").includes("text/html")
  );
}

/** Only places of our own: no other host, no scheme. */
function placeOf(text: string): string {
  return /^\/(?![/\\])[\x21-\x7e]*$/.test(text) ? text : "/";
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
  const secure = request.headers["x-forwarded-proto"] === "https";
  return `${cookieName}=${token}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure ? "; Secure" : ""}`;
}
