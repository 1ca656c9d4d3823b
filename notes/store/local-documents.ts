import { Refusal } from "../refusal.ts";
import { json, type Answer, type Piece } from "./answer.ts";
import { piecesText, wrap } from "./assemble.ts";
import { writingDocument } from "./body-turn.ts";
import { idInUrl } from "./document-ids.ts";
import type { IncomingDocument } from "./incoming.ts";
import type { StoreRequest } from "./protocol.ts";
import { count, flag, jsonParameter, withBody } from "./query.ts";
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

/** The `_local` documents by id; `_all_docs` does not list them. */
export function localDocs(store: Store, request: StoreRequest): Answer {
  const query = withBody(request);
  const keys = jsonParameter(query, "keys");
  const isListed = !Array.isArray(keys);
  const ids = isListed
    ? store.read
        .other("SELECT id FROM local_documents ORDER BY id LIMIT ? OFFSET ?")
        .all(count(query, "limit") ?? -1, count(query, "skip") ?? 0)
        .map((found) => found.id)
    : keys;
  return { status: 200, pieces: localRows(store, query, ids, isListed) };
}

function* localRows(
  store: Store,
  query: StoreRequest["query"],
  ids: readonly unknown[],
  isListed: boolean,
): Generator<Piece, void> {
  yield '{"total_rows":null,"offset":null,"rows":[';
  let separator = "";
  for (const id of ids) {
    const found = typeof id === "string" ? store.read.local.get(id) : undefined;
    // One that was listed has been deleted meanwhile.
    if (found === undefined && isListed) {
      continue;
    }
    yield separator;
    separator = ",";
    yield* localRowPieces(query, id, found);
  }
  yield "]}\n";
}

function* localRowPieces(
  query: StoreRequest["query"],
  id: unknown,
  found: ReturnType<Store["read"]["local"]["get"]>,
): Generator<Piece> {
  const key = JSON.stringify(id);
  if (found === undefined) {
    yield `{"key":${key},"error":"not_found"}`;
    return;
  }
  const rev = `0-${String(found.rev)}`;
  yield `{"id":${key},"key":${key},"value":{"rev":"${rev}"}`;
  if (flag(query, "include_docs")) {
    yield ',"doc":';
    yield* wrap(String(id), rev, found.body as Uint8Array, "");
  }
  yield "}";
}
