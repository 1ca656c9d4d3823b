import type { FastifyInstance } from "fastify";
import { themeCookie, themeOf } from "../../core/theme.ts";

/** POST /theme (a form: theme) remembers the theme of this browser, and returns to the page. */
export function registerThemeRoute(server: FastifyInstance): void {
  server.post<{ Body: { readonly theme?: unknown } | null }>(
    "/theme",
    (request, reply) => {
      const theme = themeOf(request.body?.theme);
      return reply
        .header("set-cookie", themeCookie(theme))
        .redirect(pageBefore(request.headers), 303);
    },
  );
}

/** The path of the page with the form; browsers send it to the same origin only. */
function pageBefore({
  referer = "",
  host,
}: {
  readonly referer?: string;
  readonly host?: string;
}): string {
  if (!URL.canParse(referer)) {
    return "/";
  }
  const page = new URL(referer);
  return page.host === host && !page.pathname.startsWith("//")
    ? `${page.pathname}${page.search}`
    : "/";
}
