import type { FastifyReply, FastifyRequest } from "fastify";
import { Failure } from "../../core/failure.ts";
import { countByPage } from "../pages/attention.ts";
import {
  contentSecurityPolicy,
  renderPage,
  type View,
} from "../pages/frame.ts";
import { THEME_COOKIE, themeOf } from "../../core/theme.ts";
import type { Look } from "../../core/shapes.ts";
import { cookieIn } from "../../core/cookies.ts";
import { capital } from "../../core/words.ts";
import { includesRole } from "../../supervisor/sign-in/roles.ts";
import type { Status } from "../../supervisor/status.ts";

export interface Page {
  /** Tab title and heading. */
  readonly title: string;
  readonly look: Look;
  /** Path of the page in the navigation; null outside of it. */
  readonly current: string | null;
  /** Default: 200. */
  readonly status?: number;
  /** Whether the page refreshes, and how soon: `soon` while something is in progress. Default: false. */
  readonly refreshes?: boolean | "soon";
  /** Path of the same data as JSON. */
  readonly json?: string;
  /** What needs attention, where the page shows it too; otherwise it is found again. */
  readonly attention?: Status["attention"];
}

const REFRESH_SECONDS = 15;
const SOON_SECONDS = 3;
/** In characters; in any script less than the 4 kB limit of a cookie. */
const MAX_MESSAGE_LENGTH = 400;
const MESSAGE_COOKIE = "hearth_said";

/** Answers with a page: a template of pages/templates/ and its data. */
export async function showPage<V extends View>(
  request: FastifyRequest,
  reply: FastifyReply,
  page: Page,
  template: string,
  view: V,
): Promise<FastifyReply> {
  const { title, look, current, status = 200, refreshes = false } = page;
  const { cookie: cookies } = request.headers;
  const message = messageIn(cookies);
  const notice = request.notice?.() ?? null;
  const seconds = refreshes === "soon" ? SOON_SECONDS : REFRESH_SECONDS;
  const html = await renderPage(
    {
      title,
      look: notice === null ? look : "warn",
      current,
      message,
      notice,
      signedIn: request.signedIn,
      caller: request.requester,
      needs:
        request.requester !== null &&
        includesRole(request.requester.role, "viewer")
          ? countByPage(page.attention ?? request.server.attention())
          : new Map(),
      json: page.json ?? null,
      refreshes: refreshes === false ? null : seconds,
      theme: themeOf(cookieIn(cookies, THEME_COOKIE)),
      timeZone: request.server.timeZone,
      hearth: request.server.hearth,
    },
    template,
    view,
  );
  if (message !== null) {
    reply.header("set-cookie", `${MESSAGE_COOKIE}=; Path=/; Max-Age=0`);
  }
  return reply
    .code(status)
    .header("content-security-policy", await contentSecurityPolicy())
    .type("text/html; charset=utf-8")
    .send(html);
}

/** Redirects after a successful form; `message` appears once above the page at `path`. */
export function redirectWithMessage(
  reply: FastifyReply,
  path: string,
  message: string,
): FastifyReply {
  const value = encodeURIComponent(
    message.slice(0, MAX_MESSAGE_LENGTH).toWellFormed(),
  );
  return reply
    .header(
      "set-cookie",
      `${MESSAGE_COOKIE}=${value}; Path=/; Max-Age=60; HttpOnly; SameSite=Strict`,
    )
    .redirect(path, 303);
}

/** By HTTP status. */
const FAILURE_TITLES: Readonly<Record<number, string>> = {
  403: "Access denied.",
  404: "Not found.",
};

/** Answers with an error page and a link back. */
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
      title: FAILURE_TITLES[status] ?? "Request failed.",
      look: "warn",
      current: null,
      status,
    },
    "message",
    { sentences: sentences.map(capital), back },
  );
}

/** Runs `act`; a Failure becomes an error page with a link back. */
export async function showingFailures(
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

function messageIn(cookies: string | undefined): string | null {
  const value = cookieIn(cookies, MESSAGE_COOKIE);
  if (value === undefined || value === "") {
    return null;
  }
  try {
    return decodeURIComponent(value);
  } catch {
    return null;
  }
}
