import { Refusal } from "../refusal.ts";
import { json, type Answer } from "./answer.ts";
import { piecesText, wrap } from "./assemble.ts";
import { writingDocument } from "./body-turn.ts";
import { idInUrl } from "./document-ids.ts";
import type { IncomingDocument } from "./incoming.ts";
import type { StoreRequest } from "./protocol.ts";
import { flag } from "./query.ts";
import { inTransaction, type Store } from "./store.ts";

const missing = (): Refusal => new Refusal("not_found", "missing");

/** Reads a `_local` document: never replicated, one revision only. */
export function getLocal(store: Store, request: StoreRequest): Answer {
  const row = store.read.local.get(request.id!);
  if (row === undefined) {
    throw missing();
  }
  const rev = `0-${String(row.rev)}`;
  const revisions = flag(request.query, "revs")
    ? `,"_revisions":{"start":0,"ids":["${String(row.rev)}"]}`
    : "";
  return {
    status: 200,
    headers: { etag: `"${rev}"` },
    body: `${piecesText(wrap(request.id!, rev, row.body as Uint8Array, revisions))}\n`,
  };
}

/** Writes a `_local` document, replacing any stored one. */
export async function putLocal(
  store: Store,
  request: StoreRequest,
): Promise<Answer> {
  const rev = await writingDocument(request, async (document) => {
    if (document.body.length > request.maxDocumentSize) {
      throw new Refusal("document_too_large", request.id!);
    }
    return await inTransaction(store, () =>
      writeLocal(store, request.id!, document),
    );
  });
  return json(
    201,
    { ok: true, id: request.id, rev },
    {
      etag: `"${rev}"`,
      location: `/${idInUrl(store.name)}/${idInUrl(request.id!)}`,
    },
  );
}

export async function deleteLocal(
  store: Store,
  request: StoreRequest,
): Promise<Answer> {
  await inTransaction(store, () => {
    if (store.write.dropLocal.run(request.id!).changes === 0) {
      throw missing();
    }
  });
  return json(200, { ok: true, id: request.id, rev: "0-0" }, { etag: '"0-0"' });
}

/** Stores a `_local` document under the revision after the one it names; never a conflict. Call within a transaction. */
export function writeLocal(
  store: Store,
  id: string,
  document: IncomingDocument,
): string {
  if (document.deleted) {
    store.write.dropLocal.run(id);
    return "0-0";
  }
  const { rev } = document;
  if (rev !== undefined && (rev.pos !== 0 || !/^\d{1,15}$/.test(rev.hash))) {
    throw new Refusal("bad_request", "Invalid rev format");
  }
  const next = rev === undefined ? 1 : Number(rev.hash) + 1;
  store.write.putLocal.run(id, next, document.body);
  return `0-${next}`;
}
