import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { cookieIn } from "../../core/cookies.ts";
import { Failure } from "../../core/failure.ts";
import { PENDING_MINUTES } from "../sign-in/pending-sign-ins.ts";
import { ProviderUnavailable } from "../sign-in/provider-errors.ts";
import type { UserSignIn } from "../sign-in/user-sign-in.ts";
import { cookieNameOf, type Authenticator } from "./access.ts";
import { sendError } from "./send-error.ts";
import {
  cookie,
  fieldOf,
  isPreview,
  originOf,
  redirectTarget,
  showSignedIn,
  showSignIn,
} from "./sign-in-routes.ts";

interface ProviderRequest {
  readonly Params: { readonly provider: string };
  readonly Querystring: Readonly<Record<string, string | string[] | undefined>>;
}

/**
 * Sign-in through a provider: GET /sign-in/with/:provider sends the browser there, GET …/callback is where it comes back, POST
 * …/logout is the back channel by which the provider ends sessions.
 */
export function registerProviderRoutes(
  server: FastifyInstance,
  authenticator: Authenticator,
  users: UserSignIn,
): void {
  const route = "/sign-in/with/:provider";
  const noHead = { exposeHeadRoute: false };
  server.get<ProviderRequest>(route, noHead, (request, reply) =>
    begin(request, reply, users),
  );
  server.get<ProviderRequest>(`${route}/callback`, noHead, (request, reply) =>
    finish(request, reply, authenticator, users),
  );
  server.post<ProviderRequest>(`${route}/logout`, (request, reply) =>
    endByProvider(request, reply, users),
  );
}

async function begin(
  request: FastifyRequest<ProviderRequest>,
  reply: FastifyReply,
  users: UserSignIn,
): Promise<FastifyReply> {
  if (isPreview(request)) {
    return reply.code(204).send();
  }
  const { provider } = request.params;
  const query = searchOf(request);
  const to = redirectTarget(query.get("to") ?? "/");
  if (!users.has(provider)) {
    return showSignIn(request, reply, {
      status: 404,
      to,
      note: `There is no provider of this name. Choose one below.`,
    });
  }
  const origin = originOf(request);
  if (
    new URL(origin).host !== request.headers.host &&
    query.get("at") !== "public"
  ) {
    // The provider sends the browser to the public address, which does not get the cookies of this one.
    const at = new URLSearchParams({ to, at: "public" });
    return reply.redirect(`${origin}${pathOf(request)}?${at.toString()}`, 303);
  }
  try {
    const redirectUri = `${origin}${pathOf(request)}/callback`;
    const { url, state, proof } = await users.begin(provider, redirectUri, to);
    return reply
      .header(
        "set-cookie",
        proofCookie(request, state, proof, PENDING_MINUTES * 60),
      )
      .redirect(url, 303);
  } catch (error) {
    return showProblem(request, reply, to, error);
  }
}

async function finish(
  request: FastifyRequest<ProviderRequest>,
  reply: FastifyReply,
  authenticator: Authenticator,
  users: UserSignIn,
): Promise<FastifyReply> {
  const query = searchOf(request);
  const state = query.get("state") ?? "";
  const proof = cookieIn(
    request.headers.cookie,
    proofCookieName(request, state),
  );
  reply.header("set-cookie", proofCookie(request, state, "", 0));
  try {
    const session = await users.finish(request.params.provider, query, proof);
    authenticator.endFormerSession(request);
    return await showSignedIn(request, reply, session);
  } catch (error) {
    return showProblem(request, reply, "/", error);
  }
}

/** The sign-in page says why it did not work. */
function showProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  to: string,
  error: unknown,
): Promise<FastifyReply> {
  if (!(error instanceof Failure)) {
    throw error;
  }
  return showSignIn(request, reply, {
    status: error instanceof ProviderUnavailable ? 503 : 403,
    to,
    note: error.sentences.join(" "),
  });
}

async function endByProvider(
  request: FastifyRequest<ProviderRequest>,
  reply: FastifyReply,
  users: UserSignIn,
): Promise<FastifyReply> {
  try {
    await users.endByProvider(
      request.params.provider,
      fieldOf(request, "logout_token"),
    );
    return reply.send({});
  } catch (error) {
    if (!(error instanceof Failure)) {
      throw error;
    }
    const status = error instanceof ProviderUnavailable ? 503 : 400;
    return sendError(reply, status, error.sentences.join(" "));
  }
}

function searchOf({ url }: FastifyRequest): URLSearchParams {
  return new URLSearchParams(url.split("?").slice(1).join("?"));
}

function pathOf({ params }: FastifyRequest<ProviderRequest>): string {
  return `/sign-in/with/${encodeURIComponent(params.provider)}`;
}

/** Lax, because the provider's redirect comes from another site; one cookie for each sign-in, because tabs share them. */
function proofCookie(
  request: FastifyRequest,
  state: string,
  proof: string,
  seconds: number,
): string {
  return cookie(request, {
    name: proofCookieName(request, state),
    value: proof,
    seconds,
    sameSite: "Lax",
  });
}

function proofCookieName(request: FastifyRequest, state: string): string {
  const mark = /^[0-9a-f]{8}/.exec(state)?.[0] ?? "none";
  return `${cookieNameOf(request)}_${mark}`;
}
