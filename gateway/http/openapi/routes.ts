import type { FastifyInstance } from "fastify";
import { compressPage } from "../../../core/compress-page.ts";
import type { Gateway } from "../../gateway.ts";
import { ROUTES } from "../route-table.ts";
import { DocsPages } from "../../pages/docs.ts";
import { exampleModel } from "../../pages/example-model.ts";
import { ownAddress } from "../../pages/own-address.ts";
import { send } from "../../pages/send.ts";
import { openApiDocument, type OpenApiDocument } from "./document.ts";

/** The documentation, for people and for generators of clients: without a key, because nothing in it is secret. */
export function addDocumentRoutes(
  server: FastifyInstance,
  gateway: Gateway,
): void {
  let known: OpenApiDocument | undefined;
  const documented = () => (known ??= openApiDocument(gateway.version));
  let bytes: Buffer | undefined;
  let pages: DocsPages | undefined;
  server.get("/openapi.json", { onSend: compressPage }, (_request, reply) =>
    reply
      .type("application/json; charset=utf-8")
      .header("access-control-allow-origin", "*")
      // All answers that wait for their clients share it.
      .send((bytes ??= Buffer.from(JSON.stringify(documented())))),
  );
  server.get("/routes", (_request, reply) =>
    reply.send({
      routes: ROUTES.map(({ method, paths, name }) => ({
        methods: [method],
        path: paths[0],
        also_at: paths.slice(1),
        name,
      })),
    }),
  );
  server.get("/docs", { onSend: compressPage }, (request, reply) => {
    pages ??= new DocsPages({
      document: documented(),
      version: gateway.version,
    });
    const page = pages.pageFor(ownAddress(request), exampleModel(gateway));
    return send(request, reply, page);
  });
}
