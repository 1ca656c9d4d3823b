import type { FastifyReply, FastifyRequest } from "fastify";
import { cookieIn } from "../../core/cookies.ts";
import { THEME_COOKIE, themeCookie, themeOf } from "../../core/theme.ts";
import type { Page } from "./frame.ts";

/** Whether a browser asks for a page; other clients get JSON. */
export function acceptsPage({ headers }: FastifyRequest): boolean {
  return (headers.accept ?? "").includes("text/html");
}

/**
 * Sends a page in the browser's theme; it is not cached and cannot be framed by other sites. With `?theme=` the theme is
 * remembered, and the browser is sent back to the page.
 */
export function send(
  { query, headers }: FastifyRequest,
  reply: FastifyReply,
  page: Page,
): FastifyReply {
  const { theme } = query as { readonly theme?: unknown };
  if (theme !== undefined) {
    return reply
      .header("set-cookie", themeCookie(themeOf(theme)))
      .redirect(page.path, 303);
  }
  return reply
    .type("text/html; charset=utf-8")
    .headers({
      "content-security-policy": page.contentSecurityPolicy,
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
    })
    .send(page.html(themeOf(cookieIn(headers.cookie, THEME_COOKIE))));
}
