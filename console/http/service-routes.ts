import type { FastifyInstance, FastifyReply } from "fastify";
import { sentencesOf } from "../../core/failure.ts";
import { historyByIncident } from "../../supervisor/checks/incident-history.ts";
import type { Watch } from "../../supervisor/checks/watch.ts";
import { restartOnRequest } from "../../supervisor/healing/restart.ts";
import { byAuthor } from "../../supervisor/history/author.ts";
import type { History } from "../../supervisor/history/history.ts";
import type { Runtime } from "../../supervisor/runtimes/runtime.ts";
import type { Status } from "../../supervisor/status.ts";
import { notFound } from "../../core/nearest.ts";
import { sendError } from "./send-error.ts";

export interface ServiceParts {
  readonly status: () => Status;
  readonly runtime: () => Runtime | undefined;
  readonly watch: () => Watch | undefined;
  readonly history: History;
  /** Stops everything; undefined when this supervisor started nothing. */
  readonly stop: ((reason: string) => void) | undefined;
}

interface Named {
  readonly Params: { readonly name: string };
}

const MAX_LOG_LINES = 5000;
const MAX_ENTRIES = 10_000;

/** GET /healthz, /readyz, /api/status, /api/history, /api/logs/:name; POST /api/checks/:name, /api/restart/:name, /api/stop. */
export function registerServiceRoutes(
  server: FastifyInstance,
  parts: ServiceParts,
): void {
  server.get("/healthz", () => ({
    status: "ok",
  }));
  server.get("/readyz", (_request, reply) => {
    const { ok, verdict } = parts.status();
    return reply.code(ok ? 200 : 503).send({ ready: ok, verdict });
  });
  server.get("/api/status", () => parts.status());
  registerRecords(server, parts);
  registerActions(server, parts);
}

/** History and logs. */
function registerRecords(
  server: FastifyInstance,
  { history, runtime }: ServiceParts,
): void {
  server.get<{ Querystring: { limit?: string; name?: string; by?: string } }>(
    "/api/history",
    (request, reply) => {
      const { name, by } = request.query;
      const limit = Number(request.query.limit ?? 200);
      if (!Number.isInteger(limit) || limit < 1 || limit > MAX_ENTRIES) {
        return sendError(reply, 400, `limit must be from 1 to ${MAX_ENTRIES}.`);
      }
      return reply.send({
        entries:
          by === "incident"
            ? historyByIncident(history, Date.now(), limit, name)
            : history.latest(limit, name),
      });
    },
  );
  server.get<Named & { Querystring: { lines?: string } }>(
    "/api/logs/:name",
    (request, reply) =>
      withService(reply, runtime(), request.params.name, async (runtime) => {
        const { name } = request.params;
        const lines = Number(request.query.lines ?? 200);
        if (!Number.isInteger(lines) || lines < 1 || lines > MAX_LOG_LINES) {
          return sendError(
            reply,
            400,
            `lines must be from 1 to ${MAX_LOG_LINES}.`,
          );
        }
        return reply.send({ name, lines: await runtime.logs(name, lines) });
      }),
  );
}

function registerActions(server: FastifyInstance, parts: ServiceParts): void {
  server.post<Named>("/api/checks/:name", async (request, reply) => {
    const { name } = request.params;
    const watch = parts.watch();
    const view = await watch?.probeNow(name);
    if (view !== undefined) {
      return view;
    }
    const known = watch?.list().map((check) => check.name) ?? [];
    return sendError(reply, 404, notFound("check", name, known));
  });
  server.post<Named>("/api/restart/:name", (request, reply) =>
    withService(
      reply,
      parts.runtime(),
      request.params.name,
      async (runtime) => {
        const { name } = request.params;
        try {
          await restartOnRequest(runtime, parts.watch(), name);
        } catch (error) {
          return sendError(reply, 502, sentencesOf(error).join(" "));
        }
        return reply.send(runtime.inspect(name));
      },
    ),
  );
  server.post("/api/stop", (_request, reply) => {
    if (parts.stop === undefined) {
      return sendError(
        reply,
        409,
        "this supervisor has not started any services.",
      );
    }
    parts.stop(`requested ${byAuthor()}`);
    return reply.code(202).send({ stopping: true });
  });
}

async function withService(
  reply: FastifyReply,
  runtime: Runtime | undefined,
  name: string,
  act: (runtime: Runtime) => Promise<FastifyReply>,
): Promise<FastifyReply> {
  if (runtime?.inspect(name) === undefined) {
    const known = runtime?.list().map((service) => service.name) ?? [];
    return sendError(reply, 404, notFound("service", name, known));
  }
  return act(runtime);
}
