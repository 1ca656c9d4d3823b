import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type RouteOptions,
} from "fastify";
import { compressPage } from "../../core/compress-page.ts";
import { recordOf } from "../../core/json.ts";
import { codeOf, Failure, sentencesOf } from "../../core/failure.ts";
import { watchConnections } from "../../core/client-connections.ts";
import type { AdminApi } from "../../supervisor/gateway/admin-api.ts";
import type { Status } from "../../supervisor/status.ts";
import { portTaken } from "../../supervisor/runtimes/process/ports.ts";
import { UserSessions } from "../../supervisor/history/user-sessions.ts";
import type { ProviderConfig } from "../../supervisor/sign-in/config.ts";
import { GatewayUsers } from "../sign-in/gateway-users.ts";
import { UserSignIn, type ProviderView } from "../sign-in/user-sign-in.ts";
import { Authenticator, type AuthenticatorOptions } from "./access.ts";
import { registerCommandRoutes } from "./command-routes.ts";
import { acceptForms } from "./forms.ts";
import { guardRoutes } from "./guard.ts";
import { registerProviderRoutes } from "./provider-routes.ts";
import { sendError } from "./send-error.ts";
import { registerServiceRoutes, type ServiceParts } from "./service-routes.ts";
import { showFailure } from "./show-page.ts";
import { registerSignInRoutes, wantsPage } from "./sign-in-routes.ts";
import { registerThemeRoute } from "./theme-routes.ts";

export interface ApiParts
  extends
    ServiceParts,
    Pick<AuthenticatorOptions, "credentials" | "publicUrl"> {
  /** Providers of OpenID Connect; none when left out. */
  readonly providers?: readonly ProviderConfig[];
  /** The gateway, with the master key. */
  readonly gateway: AdminApi;
  /** Called with each route that is registered. */
  readonly onRoute?: ((route: RouteOptions) => void) | undefined;
  /** Milliseconds since 1970; this machine's clock when left out. */
  readonly now?: () => number;
  /** What needs a person; a part of the status that every page shows. */
  readonly attention: () => Status["attention"];
  /** A message for the operator. */
  readonly onNotice: (sentence: string) => void;
  /** Number of proxies in front that set X-Forwarded-For; 0 ignores the header. */
  readonly proxyHops?: number;
  /** IANA name of the zone of all times on pages. */
  readonly timeZone?: string;
  /** How commands are typed here; `hearth` when left out. */
  readonly hearth?: string;
  /** In which a request without credentials must arrive; a minute when left out. */
  readonly arrivalMs?: number;
  /** Of clients; half of the files that this process may open when left out. */
  readonly maxConnections?: number;
}

declare module "fastify" {
  interface FastifyInstance {
    /** IANA name of the zone of all times on pages; null where it is unknown. */
    timeZone: string | null;
    /** How commands are typed here, such as `npx hearth`. */
    hearth: string;
    /** Where browsers reach the supervisor; null if not configured. */
    publicUrl: string | null;
    /** For the navigation of every page. */
    attention: () => Status["attention"];
    /** For the sign-in page. */
    providers: () => readonly ProviderView[];
  }
}

const MAX_NAME_LENGTH = 1000;

/** The supervisor's HTTP server: /healthz, /readyz, /sign-in, /api/…; other modules register theirs. Errors are {error: {message}}. */
export function buildApi(parts: ApiParts): FastifyInstance {
  const server = Fastify({
    forceCloseConnections: true,
    trustProxy: (_address, hop) => hop < (parts.proxyHops ?? 0),
    // Long names in paths would not match the default limit.
    routerOptions: { maxParamLength: MAX_NAME_LENGTH },
    frameworkErrors: (error, _request, reply) =>
      answerInvalidAddress(error, reply as FastifyReply),
  });
  if (parts.onRoute !== undefined) {
    server.addHook("onRoute", parts.onRoute);
  }
  server.decorate("timeZone", parts.timeZone ?? null);
  server.decorate("hearth", parts.hearth ?? "hearth");
  server.decorate("publicUrl", parts.publicUrl ?? null);
  const { credentials, publicUrl } = parts;
  const { db } = parts.history;
  const now = parts.now ?? (() => Date.now());
  const users = new UserSignIn({
    providers: parts.providers ?? [],
    sessions: new UserSessions(db, () => credentials().operatorPassword, now),
    gatewayUsers: new GatewayUsers({
      api: parts.gateway,
      onProblem: (sentence) => parts.history.act("sign_in", "notice", sentence),
    }),
    now,
  });
  const authenticator = new Authenticator({
    credentials,
    publicUrl,
    db,
    users,
    now,
  });
  server.decorate("attention", parts.attention);
  server.decorate("providers", () => users.list());
  const error = (_fields: object, sentence: string) => parts.onNotice(sentence);
  watchConnections(server.server, { error }, parts.maxConnections);
  guardRoutes(server, authenticator, parts.arrivalMs);
  server.addHook("onSend", compressPage);
  answerErrors(server);
  acceptForms(server);
  registerSignInRoutes(server, authenticator);
  registerProviderRoutes(server, authenticator, users);
  registerCommandRoutes(server, authenticator, users, parts.providers ?? []);
  registerThemeRoute(server);
  registerServiceRoutes(server, parts);
  return server;
}

/** Answers unknown paths and errors, as a page or as JSON. */
function answerErrors(server: FastifyInstance): void {
  server.setNotFoundHandler((request, reply) => {
    const [path = ""] = request.url.split("?");
    const sentence = `${request.method} ${path} not found.`;
    return wantsPage(request)
      ? showFailure(request, reply, 404, [`${path} not found.`], "/")
      : sendError(reply, 404, sentence);
  });
  server.setErrorHandler((error, request, reply) => {
    const sentences = sentencesOf(error);
    return wantsPage(request)
      ? showFailure(request, reply, statusOf(error), sentences, "/")
      : sendError(reply, statusOf(error), sentences.join(" "));
  });
}

/** Of an address that is compared with no route: without its hooks, no page can be shown. */
function answerInvalidAddress(
  error: unknown,
  reply: FastifyReply,
): FastifyReply {
  const status = statusOf(error);
  return sendError(
    reply,
    status,
    status === 414
      ? "the address contains too long a name; check the link."
      : "the address is not percent-encoded UTF-8; check the link.",
  );
}

/** Fastify sets a status for invalid requests (no JSON, too long); any other error is a bug. */
function statusOf(error: unknown): number {
  const status = recordOf(error)["statusCode"];
  return typeof status === "number" && status >= 400 && status < 500
    ? status
    : 500;
}

/** Listens. Throws a Failure that names the program on the port. */
export async function listen(
  server: FastifyInstance,
  host: string,
  port: number,
): Promise<string> {
  try {
    return await server.listen({ host, port });
  } catch (error) {
    if (codeOf(error) === "EADDRINUSE") {
      throw new Failure(
        portTaken(port, "the supervisor", "HEARTH_SUPERVISOR_PORT"),
      );
    }
    throw error;
  }
}
