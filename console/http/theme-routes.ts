import type { FastifyInstance } from "fastify";
import { themeCookie, themeOf } from "../../core/theme.ts";
import { pageBefore } from "./page-before.ts";

/** POST /theme (a form: theme) remembers the theme of this browser, and returns to the page. */
export function registerThemeRoute(server: FastifyInstance): void {
  server.post<{ Body: { readonly theme?: unknown } | null }>(
    "/theme",
    (request, reply) => {
      const theme = themeOf(request.body?.theme);
      return reply
        .header("set-cookie", themeCookie(theme))
        .redirect(pageBefore(request), 303);
    },
  );
}
