import type { FastifyInstance } from "fastify";
import type { Gateway } from "../gateway.ts";
import { ROUTES } from "../http/route-table.ts";
import { openApiDocument, type OpenApiDocument } from "./document.ts";

/** What there is, for people and for generators of clients: no key is needed, nothing in it is secret. */
export function addDocumentRoutes(
  server: FastifyInstance,
  gateway: Gateway,
): void {
  let known: OpenApiDocument | undefined;
  const documented = () => (known ??= openApiDocument(ROUTES, gateway.version));
  server.get("/openapi.json", (_request, reply) =>
    reply
      .type("application/json; charset=utf-8")
      .header("access-control-allow-origin", "*")
      .send(JSON.stringify(documented())),
  );
}
