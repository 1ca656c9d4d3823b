import { Refusal } from "../refusal.ts";
import { json, type Answer } from "./answer.ts";
import { writingDocument } from "./body-turn.ts";
import { edit, replicate } from "./change-document.ts";
import { checkId, idInUrl, newId, refuseDesign } from "./document-ids.ts";
import type { IncomingDocument } from "./incoming.ts";
import { writeLocal } from "./local-documents.ts";
import type { StoreRequest } from "./protocol.ts";
import {
  etagOf,
  parseRevision,
  revisionOfEtag,
  revisionText,
  type Revision,
} from "./revisions.ts";
import { inTransaction, type Store } from "./store.ts";
import { storable } from "./users.ts";

/** Writes one document under the id of the URL. */
export async function putDocument(
  store: Store,
  request: StoreRequest,
): Promise<Answer> {
  const id = request.id!;
  checkId(id);
  const rev = namedRevision(request);
  return await writingDocument(
    request,
    async (document) => await write(store, request, id, document, rev),
  );
}

/** Writes one document under the id in its body, or a new one. */
export async function postDocument(
  store: Store,
  request: StoreRequest,
): Promise<Answer> {
  return await writingDocument(request, async (document) => {
    const id = document.id ?? newId();
    checkId(id);
    return await write(store, request, id, document, undefined);
  });
}

async function write(
  store: Store,
  request: StoreRequest,
  id: string,
  document: IncomingDocument,
  named: Revision | undefined,
): Promise<Answer> {
  const { query } = request;
  refuseDesign(id, request.admin === true);
  if (document.body.length > request.maxDocumentSize) {
    throw new Refusal("document_too_large", document.id ?? "");
  }
  refuseOther(
    named,
    document.rev,
    query.rev === undefined ? DIFFERENT_ETAG : DIFFERENT_BODY,
  );
  const stored = storable(store, id, document);
  const rev = await inTransaction(store, () => {
    if (id.startsWith("_local/")) {
      return writeLocal(store, id, stored);
    }
    return query.new_edits === "false"
      ? replicate(store, id, stored)
      : edit(store, id, stored, named ?? stored.rev);
  });
  if (query.batch === "ok") {
    return json(202, { ok: true, id });
  }
  const isPut = request.operation === "putDocument";
  return json(
    isPut && document.deleted ? 200 : 201,
    { ok: true, id, rev },
    {
      ...(isPut ? { etag: etagOf(rev) } : {}),
      location: `/${idInUrl(store.name)}/${idInUrl(id)}`,
    },
  );
}

/** Deletes a document by writing an empty deleted revision. */
export async function deleteDocument(
  store: Store,
  request: StoreRequest,
): Promise<Answer> {
  const id = request.id!;
  const named = namedRevision(request);
  refuseDesign(id, request.admin === true);
  const rev = await inTransaction(store, () => {
    const row = store.write.document.get(id);
    if (row === undefined) {
      throw new Refusal("not_found", "missing");
    }
    if (row.deleted === 1) {
      throw new Refusal("not_found", "deleted");
    }
    if (named === undefined) {
      throw new Refusal("conflict", "Document update conflict.");
    }
    return edit(store, id, DELETED, named);
  });
  return json(200, { ok: true, id, rev }, { etag: etagOf(rev) });
}

/** The revision in the URL, or else in the header `If-Match`. */
function namedRevision({ query, ifMatch }: StoreRequest): Revision | undefined {
  const inUrl = query.rev === undefined ? undefined : parseRevision(query.rev);
  const inHeader =
    ifMatch === undefined ? undefined : parseRevision(revisionOfEtag(ifMatch));
  refuseOther(inUrl, inHeader, DIFFERENT_ETAG);
  return inUrl ?? inHeader;
}

const DIFFERENT_BODY =
  "Document rev from request body and query string have different values";
const DIFFERENT_ETAG = "Document rev and etag have different values";

/** Throws if both revisions are given and differ: an edit must not replace a revision that its client does not expect. */
function refuseOther(
  one: Revision | undefined,
  other: Revision | undefined,
  reason: string,
): void {
  if (
    one !== undefined &&
    other !== undefined &&
    revisionText(one) !== revisionText(other)
  ) {
    throw new Refusal("bad_request", reason);
  }
}

const DELETED: IncomingDocument = {
  id: undefined,
  rev: undefined,
  deleted: true,
  history: undefined,
  body: Buffer.alloc(0),
  type: undefined,
};
