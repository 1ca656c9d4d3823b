import Fastify, { type FastifyInstance } from "fastify";
import { codeOf, Failure, sentencesOf } from "../../core/failure.ts";
import { portTaken } from "../../supervisor/runtimes/process/ports.ts";
import { Door, type DoorParts } from "./access.ts";
import { acceptForms } from "./forms.ts";
import { guardRoutes } from "./guard.ts";
import { refuse } from "./refuse.ts";
import { registerServiceRoutes, type ServiceParts } from "./service-routes.ts";
import { showFailure } from "./show-page.ts";
import { registerSignInRoutes, wantsPage } from "./sign-in-routes.ts";

export interface ApiParts
  extends ServiceParts, Pick<DoorParts, "credentials" | "publicUrl"> {
  /** Proxies in front that say in X-Forwarded-For whom they speak for; without any, the header is ignored. */
  readonly proxyHops?: number;
}

const LONGEST_NAME = 1000;

/** The supervisor's HTTP face: /healthz, /readyz, /sign-in, /api/…; rooms add theirs. Errors are {error: {message}}. */
export function buildApi(parts: ApiParts): FastifyInstance {
  const server = Fastify({
    forceCloseConnections: true,
    trustProxy: (_address, hop) => hop < (parts.proxyHops ?? 0),
    // Names in paths may be long; without this they would be as good as unknown.
    routerOptions: { maxParamLength: LONGEST_NAME },
  });
  const { credentials, publicUrl } = parts;
  const door = new Door({
    credentials,
    publicUrl,
    db: parts.history.db,
    now: () => Date.now(),
  });
  guardRoutes(server, door);
  answerErrors(server);
  acceptForms(server);
  registerSignInRoutes(server, door, publicUrl);
  registerServiceRoutes(server, parts);
  return server;
}

/** What is not found and what fails, as a page or as JSON. */
function answerErrors(server: FastifyInstance): void {
  server.setNotFoundHandler((request, reply) => {
    const [path = ""] = request.url.split("?");
    const sentence = `there is no ${request.method} ${path}.`;
    return wantsPage(request)
      ? showFailure(request, reply, 404, [`Nothing is at ${path}.`], "/")
      : refuse(reply, 404, sentence);
  });
  server.setErrorHandler((error, request, reply) => {
    const sentences = sentencesOf(error);
    return wantsPage(request)
      ? showFailure(request, reply, statusOf(error), sentences, "/")
      : refuse(reply, statusOf(error), sentences.join(" "));
  });
}

/** Fastify names what is wrong with a request (no JSON, too long); all else is our own mistake. */
function statusOf(error: unknown): number {
  const status: unknown =
    typeof error === "object" && error !== null
      ? Reflect.get(error, "statusCode")
      : undefined;
  return typeof status === "number" && status >= 400 && status < 500
    ? status
    : 500;
}

/** Listens, or says which program has the port. */
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
