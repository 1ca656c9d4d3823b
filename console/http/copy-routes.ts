import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import {
  copyFileName,
  CopyIsComplete,
  copySchema,
  type Copies,
  type CopyPlace,
} from "../../supervisor/backup/copies.ts";
import { momentOf } from "../../supervisor/backup/manifest.ts";
import type { Failure } from "../../core/failure.ts";
import { sendError, sendResult } from "./send-error.ts";

const place = z.object({
  kind: z.enum(["postgres", "notes"]),
  name: z.string().refine((name) => momentOf(name) !== undefined),
});
const file = place.extend({
  file: copyFileName,
});
/** The size to be sent, so that a copy is rejected before it is sent. */
const bytes = z.object({
  bytes: z.coerce.number().int().nonnegative().catch(0),
});
const keyId = z.object({ key: z.string().regex(/^[0-9a-f]{8}$/) });

/**
 * Stores copies of the other host's backups. GET /api/copies; GET (what arrived), PUT a
 * file and POST (complete) below /api/copies/:kind/:name; GET a file of a complete one. No request
 * changes or deletes a complete copy (409).
 */
export function registerCopyRoutes(
  server: FastifyInstance,
  copies: Copies,
): void {
  server.addContentTypeParser(
    "application/octet-stream",
    (_request, payload, done) => done(null, payload),
  );
  server.get("/api/copies", () => ({ copies: copies.list() }));
  server.get("/api/copies/:kind/:name", (request, reply) => {
    const where = placeOf(request);
    return where === undefined
      ? sendError(reply, 400, "invalid copy name.")
      : sendResult(reply, statusOfCopyFailure, async () => {
          copies.needRoom(bytes.parse(request.query).bytes);
          return { arrived: await copies.arrived(where) };
        });
  });
  server.put(
    "/api/copies/:kind/:name/:file",
    { bodyLimit: Number.MAX_SAFE_INTEGER },
    async (request, reply) => {
      const where = placeOf(request);
      const named = file.safeParse(request.params);
      if (where === undefined || !named.success) {
        return sendError(reply, 400, "invalid copy name.");
      }
      return sendResult(reply.code(201), statusOfCopyFailure, () =>
        copies.store(where, named.data.file, request.body as Readable),
      );
    },
  );
  server.post("/api/copies/:kind/:name", async (request, reply) => {
    const where = placeOf(request);
    const copy = copySchema.safeParse(request.body);
    if (where === undefined || !copy.success) {
      return sendError(reply, 400, "invalid copy manifest.");
    }
    return sendResult(reply.code(201), statusOfCopyFailure, async () => {
      await copies.complete(where, copy.data);
      return { complete: true };
    });
  });
  server.get("/api/copies/:kind/:name/:file", (request, reply) => {
    const named = file.safeParse(request.params);
    const path = named.success
      ? copies.file(named.data.kind, named.data.name, named.data.file)
      : undefined;
    return path === undefined
      ? sendError(reply, 404, "file not found in any copy.")
      : reply.type("application/octet-stream").send(createReadStream(path));
  });
}

function placeOf(request: {
  readonly params: unknown;
  readonly query: unknown;
}): CopyPlace | undefined {
  const named = place.safeParse(request.params);
  const key = keyId.safeParse(request.query);
  return named.success && key.success
    ? { ...named.data, keyId: key.data.key }
    : undefined;
}

function statusOfCopyFailure(error: Failure): 409 | 507 {
  return error instanceof CopyIsComplete ? 409 : 507;
}
