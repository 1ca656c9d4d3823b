import type { FastifyRequest } from "fastify";

/** The path of the page with the form that was sent; browsers name it to the same origin only. */
export function pageBefore({
  headers: { referer = "", host },
}: Pick<FastifyRequest, "headers">): string {
  if (!URL.canParse(referer)) {
    return "/";
  }
  const page = new URL(referer);
  return page.host === host && !page.pathname.startsWith("//")
    ? `${page.pathname}${page.search}`
    : "/";
}
