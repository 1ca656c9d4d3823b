import Fastify, { type FastifyInstance } from "fastify";
import type { Watch } from "../../supervisor/checks/watch.ts";
import type { Credentials } from "../../supervisor/credentials.ts";
import { sentencesOf } from "../../core/failure.ts";
import type { History } from "../../supervisor/history/history.ts";
import { portTaken } from "../../supervisor/runtimes/process/ports.ts";
import { Failure, codeOf } from "../../core/failure.ts";
import { restartAsked } from "../../supervisor/healing/restart.ts";
import type { Runtime } from "../../supervisor/runtimes/runtime.ts";
import type { Status } from "../../supervisor/status.ts";
import { inWords } from "../../core/duration.ts";
import { openDoor, type Audience } from "./access.ts";
import { acceptForms } from "./forms.ts";
import { noSuch, refuse } from "./refuse.ts";
import { showFailure } from "./show-page.ts";
import {
  askToSignIn,
  registerSignInRoutes,
  wantsPage,
} from "./sign-in-routes.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** What the route requires; `operator` when left out. */
    audience?: Audience;
  }
  interface FastifyRequest {
    /** Came in by a session's cookie. */
    signedIn: boolean;
  }
}

export interface ApiParts {
  readonly status: () => Status;
  readonly runtime: () => Runtime | undefined;
  readonly watch: () => Watch | undefined;
  readonly history: History;
  /** Begins to stop everything; absent when this supervisor started nothing. */
  readonly stop: ((reason: string) => void) | undefined;
  readonly credentials: () => Credentials;
  /** Where browsers reach this supervisor, if not at an address or a local name. */
  readonly publicUrl: string | undefined;
  /** Proxies in front that say in X-Forwarded-For whom they speak for; without any, the header is ignored. */
  readonly proxyHops?: number;
}

const MOST_LOG_LINES = 5000;
const MOST_ENTRIES = 10_000;
const LONGEST_NAME = 1000;
const FOREIGN_HOST =
  "Browsers reach this supervisor under an IP address, a local name, or the name in SUPERVISOR_PUBLIC_URL, and no other.";

/** The supervisor's HTTP face: /healthz, /readyz, /sign-in, /api/…; rooms add theirs. Errors are {error: {message}}. */
export function buildApi(parts: ApiParts): FastifyInstance {
  const server = Fastify({
    forceCloseConnections: true,
    trustProxy: (_address, hop) => hop < (parts.proxyHops ?? 0),
    // Names in paths may be long; without this they would be as good as unknown.
    routerOptions: { maxParamLength: LONGEST_NAME },
  });

  const { credentials, publicUrl } = parts;
  const door = openDoor({
    credentials,
    publicUrl,
    db: parts.history.db,
    now: () => Date.now(),
  });

  server.decorateRequest("signedIn", false);
  server.addHook("onRequest", async (request, reply) => {
    const { audience = "operator" } = request.routeOptions.config;
    const access = door.judge(request, audience);
    switch (access.kind) {
      case "allowed":
        request.signedIn = door.isSignedIn(request);
        return;
      case "foreign-page":
        return refuse(reply, 403, "a page of another origin may not do this.");
      case "foreign-host":
        return wantsPage(request)
          ? showFailure(request, reply, 403, [FOREIGN_HOST], "/")
          : refuse(reply, 403, FOREIGN_HOST);
      case "wait":
        return refuse(
          reply.header("retry-after", Math.ceil(access.ms / 1000)),
          429,
          `too many wrong passwords: try again in ${inWords(access.ms)}.`,
        );
      case "unauthenticated":
        if (wantsPage(request)) {
          return askToSignIn(request, reply, { status: 401, to: request.url });
        }
        return refuse(
          reply.header("www-authenticate", 'Basic realm="Hearth"'),
          401,
          audience === "metrics"
            ? "this needs the token that `hearth operator metrics-token` shows, as a bearer token."
            : "sign in as the user operator with the operator password: `hearth operator password` shows it.",
        );
    }
  });
  server.addHook("onSend", async (_request, reply) => {
    reply.headers({
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      // Without it browsers hide the origin of our own forms too.
      "referrer-policy": "same-origin",
      "cache-control": "no-store",
    });
  });
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

  acceptForms(server);
  registerSignInRoutes(server, door, publicUrl);
  server.get("/healthz", { config: { audience: "public" } }, () => ({
    status: "ok",
  }));
  server.get(
    "/readyz",
    { config: { audience: "metrics" } },
    (_request, reply) => {
      const { ok, verdict } = parts.status();
      return reply.code(ok ? 200 : 503).send({ ready: ok, verdict });
    },
  );
  server.get("/api/status", () => parts.status());
  server.get<{ Querystring: { limit?: string; name?: string } }>(
    "/api/history",
    (request, reply) => {
      const limit = Number(request.query.limit ?? 200);
      if (!Number.isInteger(limit) || limit < 1 || limit > MOST_ENTRIES) {
        return refuse(reply, 400, `limit must be from 1 to ${MOST_ENTRIES}.`);
      }
      return reply.send({
        entries: parts.history.latest(limit, request.query.name),
      });
    },
  );

  server.get<{ Params: { name: string }; Querystring: { lines?: string } }>(
    "/api/logs/:name",
    async (request, reply) => {
      const runtime = parts.runtime();
      const { name } = request.params;
      if (runtime?.inspect(name) === undefined) {
        return refuse(reply, 404, noSuch("service", name, serviceNames()));
      }
      const lines = Number(request.query.lines ?? 200);
      if (!Number.isInteger(lines) || lines < 1 || lines > MOST_LOG_LINES) {
        return refuse(reply, 400, `lines must be from 1 to ${MOST_LOG_LINES}.`);
      }
      return reply.send({ name, lines: await runtime.logs(name, lines) });
    },
  );
  server.post<{ Params: { name: string } }>(
    "/api/checks/:name",
    async (request, reply) => {
      const { name } = request.params;
      const view = await parts.watch()?.lookNow(name);
      if (view !== undefined) {
        return view;
      }
      const known =
        parts
          .watch()
          ?.list()
          .map((check) => check.name) ?? [];
      return refuse(reply, 404, noSuch("check", name, known));
    },
  );
  server.post<{ Params: { name: string } }>(
    "/api/restart/:name",
    async (request, reply) => {
      const runtime = parts.runtime();
      const { name } = request.params;
      if (runtime?.inspect(name) === undefined) {
        return refuse(reply, 404, noSuch("service", name, serviceNames()));
      }
      try {
        await restartAsked(runtime, parts.watch(), name);
      } catch (error) {
        return refuse(reply, 502, sentencesOf(error).join(" "));
      }
      return runtime.inspect(name);
    },
  );
  server.post("/api/stop", (_request, reply) => {
    if (parts.stop === undefined) {
      return refuse(
        reply,
        409,
        "this supervisor started nothing that it could stop.",
      );
    }
    parts.stop("asked by the operator");
    return reply.code(202).send({ stopping: true });
  });

  function serviceNames(): readonly string[] {
    return (
      parts
        .runtime()
        ?.list()
        .map((service) => service.name) ?? []
    );
  }
  return server;
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
