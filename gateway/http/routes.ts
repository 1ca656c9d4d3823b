import type { FastifyInstance, FastifyRequest } from "fastify";
import { authenticate } from "../access/authenticate.ts";
import { ruleOf } from "../access/policy.ts";
import { recordRefusal } from "../calls/record-refusal.ts";
import type { Gateway } from "../gateway.ts";
import { addDocumentRoutes } from "./openapi/routes.ts";
import { addPageRoutes } from "../pages/routes.ts";
import { liveliness, readiness } from "./routes/health.ts";
import { databaseUnavailable } from "./errors.ts";
import { ROUTES, type Route } from "./route-table.ts";

/** Every route of the gateway, in one place. */
export function addRoutes(server: FastifyInstance, gateway: Gateway): void {
  server.get("/health/liveliness", (_request, reply) =>
    reply.type("application/json").send(liveliness()),
  );
  server.get("/health/liveness", (_request, reply) =>
    reply.type("application/json").send(liveliness()),
  );
  server.get("/health/readiness", (_request, reply) =>
    reply.send(readiness(gateway, reply)),
  );
  addDocumentRoutes(server, gateway);
  addPageRoutes(server, gateway);
  for (const route of ROUTES) {
    add(server, gateway, route);
  }
}

function add(
  server: FastifyInstance,
  gateway: Gateway,
  { name, method, paths, handler, errorBody, fromTheStart, ownKeys }: Route,
): void {
  const isCall = ruleOf(name).kind === "llm_api";

  /** By the headers alone: of a request that is not let in no byte of the body is read. */
  async function letIn(request: FastifyRequest): Promise<void> {
    if (!fromTheStart && !gateway.database.ready()) {
      throw databaseUnavailable();
    }
    if (ownKeys) {
      return;
    }
    try {
      request.caller = await authenticate(gateway, request.headers);
    } catch (error) {
      if (isCall) {
        recordRefusal(gateway, request, error);
      }
      throw error;
    }
  }

  for (const url of paths) {
    server.route({
      method,
      url,
      config: errorBody === undefined ? {} : { errorBody },
      onRequest: letIn,
      handler: (request, reply) => handler(gateway, request, reply),
    });
  }
}
