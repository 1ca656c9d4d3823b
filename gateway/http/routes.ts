import type { FastifyInstance } from "fastify";
import type { Gateway } from "../gateway.ts";
import { addDocumentRoutes } from "../openapi/routes.ts";
import { addPageRoutes } from "../pages/routes.ts";
import { liveliness, readiness } from "../routes/health.ts";
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
  for (const route of ROUTES) add(server, gateway, route);
}

function add(
  server: FastifyInstance,
  gateway: Gateway,
  { method, paths, handler, errorBody, fromTheStart }: Route,
): void {
  for (const url of paths)
    server.route({
      method,
      url,
      config: errorBody === undefined ? {} : { errorBody },
      handler: (request, reply) => {
        if (!fromTheStart && !gateway.database.ready())
          throw databaseUnavailable();
        return handler(gateway, request, reply);
      },
    });
}
