import type { FastifyReply, FastifyRequest } from "fastify";
import { Failure } from "../../core/failure.ts";
import { contentSecurityPolicy, renderPage } from "../pages/frame.ts";
import type { Look } from "../../core/shapes.ts";

export interface Page {
  /** The verdict: tab title and heading. */
  readonly title: string;
  readonly look: Look;
  /** Path in the navigation that stands for it; null when it stands outside. */
  readonly current: string | null;
  /** 200 when left out. */
  readonly status?: number;
  /** Whether it shows anew what changes, and how soon: `soon` where somebody waits for it. Not when left out. */
  readonly refreshes?: boolean | "soon";
  /** Where a program gets the same. */
  readonly json?: string;
}

const USUAL_SECONDS = 15;
const SOON_SECONDS = 3;
/** Characters; in any script that is less than the 4 kB that browsers keep of a cookie. */
const LONGEST_SAID = 400;
const SAID_COOKIE = "hearth_said";

/** Answers with a page of the console: a template of pages/templates/ and what it shows. */
export async function showPage(
  request: FastifyRequest,
  reply: FastifyReply,
  { title, look, current, status = 200, refreshes = false, json }: Page,
  template: string,
  view: object,
): Promise<FastifyReply> {
  const said = saidIn(request.headers.cookie);
  const seconds = refreshes === "soon" ? SOON_SECONDS : USUAL_SECONDS;
  const html = await renderPage(
    {
      title,
      look,
      current,
      said,
      signedIn: request.signedIn,
      json: json ?? null,
      refreshes: refreshes === false ? null : seconds,
    },
    template,
    view,
  );
  if (said !== null) {
    reply.header("set-cookie", `${SAID_COOKIE}=; Path=/; Max-Age=0`);
  }
  return reply
    .code(status)
    .header("content-security-policy", await contentSecurityPolicy())
    .type("text/html; charset=utf-8")
    .send(html);
}

/** The answer to a form that could be carried out: the browser goes to `path`, where `said` stands above the page once. */
export function afterwards(
  reply: FastifyReply,
  path: string,
  said: string,
): FastifyReply {
  const value = encodeURIComponent(said.slice(0, LONGEST_SAID).toWellFormed());
  return reply
    .header(
      "set-cookie",
      `${SAID_COOKIE}=${value}; Path=/; Max-Age=60; HttpOnly; SameSite=Strict`,
    )
    .redirect(path, 303);
}

/** The answer to a form, or for a page, that cannot be: why, and the way back. */
export function showFailure(
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  sentences: readonly string[],
  back: string,
): Promise<FastifyReply> {
  return showPage(
    request,
    reply,
    {
      title: status === 404 ? "There is no such page." : "That did not work.",
      look: "warn",
      current: null,
      status,
    },
    "message",
    { sentences, back },
  );
}

/** Does what a page asks for; a Failure is a page with its sentences and the way back. */
export async function attempting(
  request: FastifyRequest,
  reply: FastifyReply,
  {
    statusOf,
    back,
  }: {
    readonly statusOf: (failure: Failure) => number;
    readonly back: string;
  },
  act: () => FastifyReply | Promise<FastifyReply>,
): Promise<FastifyReply> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof Failure)) {
      throw error;
    }
    return showFailure(request, reply, statusOf(error), error.sentences, back);
  }
}

function saidIn(cookies: string | undefined): string | null {
  const value = cookies
    ?.split(/;\s*/)
    .find((each) => each.startsWith(`${SAID_COOKIE}=`))
    ?.slice(SAID_COOKIE.length + 1);
  if (value === undefined || value === "") {
    return null;
  }
  try {
    return decodeURIComponent(value);
  } catch {
    return null;
  }
}
