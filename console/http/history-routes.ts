import type { FastifyInstance } from "fastify";
import { z } from "zod";
import type { VaultOperations } from "../../supervisor/vaults/vault-acts.ts";
import { answering, withBody } from "./vault-answers.ts";

const MAX_BODY = 64 * 1024 * 1024;
const chunksBody = z.strictObject({ ids: z.array(z.string()).max(20) });
const writeBody = z.strictObject({
  documents: z.array(z.looseObject({ _id: z.string() })).max(200),
  chunks: z.array(z.string()),
});

interface VaultRequest {
  readonly Params: { readonly vault: string };
  readonly Querystring: Readonly<Record<string, string | undefined>>;
}

/**
 * A vault's history as it is stored; clients decrypt what is encrypted. Under /api/notes/:vault/history: GET, GET
 * /space, GET /notes?at=&start=, GET /held?start=, GET /versions?document=, GET /changes?since=, POST /chunks {ids}, POST /write {documents, chunks}.
 */
export function registerHistoryRoutes(
  server: FastifyInstance,
  acts: VaultOperations,
): void {
  const base = "/api/notes/:vault/history";
  server.get<VaultRequest>(base, ({ params }, reply) =>
    answering(reply, async () => (await acts.history(params.vault)).summary()),
  );
  server.get<VaultRequest>(`${base}/space`, ({ params }, reply) =>
    answering(reply, async () => (await acts.history(params.vault)).space()),
  );
  server.get<VaultRequest>(`${base}/notes`, ({ params, query }, reply) =>
    answering(reply, async () =>
      (await acts.history(params.vault)).notesAt(
        Number(query["at"] ?? Date.now()),
        query["start"] ?? "",
      ),
    ),
  );
  server.get<VaultRequest>(`${base}/held`, ({ params, query }, reply) =>
    answering(reply, async () =>
      (await acts.history(params.vault)).held(query["start"] ?? ""),
    ),
  );
  server.get<VaultRequest>(`${base}/versions`, ({ params, query }, reply) =>
    answering(reply, async () =>
      (await acts.history(params.vault)).versions(query["document"] ?? ""),
    ),
  );
  server.get<VaultRequest>(`${base}/changes`, ({ params, query }, reply) =>
    answering(reply, async () =>
      (await acts.history(params.vault)).changes(query["since"] ?? "0"),
    ),
  );
  server.post<VaultRequest>(`${base}/chunks`, (request, reply) =>
    withBody(request, reply, chunksBody, async (body) =>
      (await acts.history(request.params.vault)).chunks(body.ids),
    ),
  );
  server.post<VaultRequest>(
    `${base}/write`,
    { bodyLimit: MAX_BODY },
    (request, reply) =>
      withBody(request, reply, writeBody, async ({ documents, chunks }) => {
        await acts.restoreNotes(request.params.vault, documents, chunks);
        return { ok: true };
      }),
  );
}
