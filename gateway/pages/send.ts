import type { FastifyReply } from "fastify";
import type { Page } from "./frame.ts";

/** Sends a page that is not cached and cannot be framed by other sites. */
export function send(reply: FastifyReply, page: Page): FastifyReply {
  return reply
    .type("text/html; charset=utf-8")
    .headers({
      "content-security-policy": page.contentSecurityPolicy,
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
    })
    .send(page.html);
}
