import { randomBytes } from "node:crypto";
import { Refusal } from "../refusal.ts";
import { json, type Answer, type Piece } from "./answer.ts";
import { documentPieces, type Extras } from "./assemble.ts";
import { edit, replicate } from "./change-document.ts";
import { checkId, idInUrl, newId, refuseDesign } from "./document-ids.ts";
import { readDocument, type IncomingDocument } from "./incoming.ts";
import { writeLocal } from "./local-documents.ts";
import type { StoreRequest } from "./protocol.ts";
import { bodyBytes, flag, jsonParameter } from "./query.ts";
import {
  compareRevisions,
  leavesOf,
  parseRevision,
  revisionText,
  stateOf,
  type Revision,
} from "./revisions.ts";
import {
  inTransaction,
  treeOf,
  type DocumentRow,
  type Store,
} from "./store.ts";
import { storable } from "./users.ts";

/** Reads one document, one of its revisions, or several (`open_revs`). */
export function getDocument(store: Store, request: StoreRequest): Answer {
  const { query } = request;
  const row = store.read.document.get(request.id!) as unknown as
    DocumentRow | undefined;
  if (query.open_revs !== undefined) return openRevisions(store, request, row);
  const asked = query.rev === undefined ? undefined : parseRevision(query.rev);
  if (row === undefined) throw new Refusal("not_found", "missing");
  if (asked === undefined && row.deleted === 1) {
    throw new Refusal("not_found", "deleted");
  }
  const rev =
    asked === undefined ? row.winner : pick(row, revisionText(asked), query);
  const extras = extrasOf(query);
  const pieces = documentPieces(store, row, rev, extras);
  if (pieces === undefined) throw new Refusal("not_found", "missing");
  const etag = `"${rev}"`;
  // What the answer then shows can change while the revision does not.
  const cacheable =
    !extras.revsInfo &&
    !extras.conflicts &&
    !extras.deletedConflicts &&
    !extras.localSeq;
  if (cacheable && request.ifNoneMatch === etag) {
    return { status: 304, headers: { etag }, body: "" };
  }
  return {
    status: 200,
    headers: cacheable ? { etag } : {},
    pieces: withLineFeed(pieces),
  };
}

function* withLineFeed(pieces: readonly Piece[]): Generator<Piece, void> {
  yield* pieces;
  yield "\n";
}

function pick(
  row: DocumentRow,
  rev: string,
  query: StoreRequest["query"],
): string {
  if (!flag(query, "latest")) return rev;
  return leavesOf(treeOf(row), rev)[0] ?? rev;
}

function extrasOf(query: StoreRequest["query"]): Extras {
  const meta = flag(query, "meta");
  return {
    revs: flag(query, "revs"),
    revsInfo: meta || flag(query, "revs_info"),
    conflicts: meta || flag(query, "conflicts"),
    deletedConflicts: meta || flag(query, "deleted_conflicts"),
    localSeq: flag(query, "local_seq"),
  };
}

function openRevisions(
  store: Store,
  request: StoreRequest,
  row: DocumentRow | undefined,
): Answer {
  const { query } = request;
  const wanted =
    query.open_revs === "all" ? "all" : jsonParameter(query, "open_revs");
  if (wanted !== "all" && !Array.isArray(wanted)) {
    throw new Refusal(
      "bad_request",
      "`open_revs` must be all or a list of revisions.",
    );
  }
  if (row === undefined && wanted === "all") {
    throw new Refusal("not_found", "missing");
  }
  const revs = new Set<string>();
  if (wanted === "all") {
    const { leaves } = stateOf(treeOf(row!));
    for (const leaf of leaves.map((each) => each.rev).sort(compareRevisions)) {
      revs.add(leaf);
    }
  } else {
    for (const each of wanted) {
      const rev = revisionText(parseRevision(each));
      const latest =
        row !== undefined && flag(query, "latest")
          ? leavesOf(treeOf(row), rev).sort(compareRevisions)
          : [];
      for (const found of latest.length > 0 ? latest : [rev]) revs.add(found);
    }
  }
  const found = [...revs].map((rev) => ({
    rev,
    pieces:
      row === undefined
        ? undefined
        : documentPieces(store, row, rev, extrasOf(query)),
  }));
  return request.acceptsMultipart === true
    ? multipart(found)
    : { status: 200, pieces: listed(found) };
}

interface Found {
  readonly rev: string;
  readonly pieces: readonly Piece[] | undefined;
}

function* listed(found: readonly Found[]): Generator<Piece, void> {
  yield "[";
  for (const [index, { rev, pieces }] of found.entries()) {
    if (index > 0) yield ",";
    if (pieces === undefined) yield `{"missing":"${rev}"}`;
    else {
      yield '{"ok":';
      yield* pieces;
      yield "}";
    }
  }
  yield "]\n";
}

function multipart(found: readonly Found[]): Answer {
  const boundary = randomBytes(16).toString("hex");
  return {
    status: 200,
    headers: { "content-type": `multipart/mixed; boundary="${boundary}"` },
    pieces: (function* (): Generator<Piece, void> {
      yield `--${boundary}`;
      for (const { rev, pieces } of found) {
        const error = pieces === undefined ? '; error="true"' : "";
        yield `\r\nContent-Type: application/json${error}\r\n\r\n`;
        if (pieces === undefined) yield `{"missing":"${rev}"}`;
        else yield* pieces;
        yield `\r\n--${boundary}`;
      }
      yield "--";
    })(),
  };
}

/** Writes one document under the id of the URL. */
export async function putDocument(
  store: Store,
  request: StoreRequest,
): Promise<Answer> {
  const id = request.id!;
  checkId(id);
  const rev = namedRevision(request);
  const document = readDocument(bodyBytes(request.body));
  return await write(store, request, id, document, rev);
}

/** Writes one document under the id in its body, or a new one. */
export async function postDocument(
  store: Store,
  request: StoreRequest,
): Promise<Answer> {
  const document = readDocument(bodyBytes(request.body));
  const id = document.id ?? newId();
  checkId(id);
  return await write(store, request, id, document, undefined);
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
  if (
    named !== undefined &&
    document.rev !== undefined &&
    revisionText(named) !== revisionText(document.rev)
  ) {
    throw new Refusal(
      "bad_request",
      "Document rev from request body and query string have different values",
    );
  }
  const stored = storable(store, id, document);
  const rev = await inTransaction(store, () => {
    if (id.startsWith("_local/")) return writeLocal(store, id, stored);
    return query.new_edits === "false"
      ? replicate(store, id, stored)
      : edit(store, id, stored, named ?? stored.rev);
  });
  if (query.batch === "ok") return json(202, { ok: true, id });
  const isPut = request.operation === "putDocument";
  return json(
    isPut && document.deleted ? 200 : 201,
    { ok: true, id, rev },
    {
      ...(isPut ? { etag: `"${rev}"` } : {}),
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
    if (row === undefined) throw new Refusal("not_found", "missing");
    if (row.deleted === 1) throw new Refusal("not_found", "deleted");
    if (named === undefined) {
      throw new Refusal("conflict", "Document update conflict.");
    }
    return edit(store, id, emptyDocument(true), named);
  });
  return json(200, { ok: true, id, rev }, { etag: `"${rev}"` });
}

/** Writes a document's present content under another id. */
export async function copyDocument(
  store: Store,
  request: StoreRequest,
): Promise<Answer> {
  const [target, targetRev] = readDestination(request.destination);
  checkId(target);
  refuseDesign(target, request.admin === true);
  const rev = await inTransaction(store, () => {
    const row = store.write.document.get(request.id!) as unknown as
      DocumentRow | undefined;
    if (row === undefined) throw new Refusal("not_found", "missing");
    if (row.deleted === 1) throw new Refusal("not_found", "deleted");
    const { body } = store.write.body.get(row.number, row.winner) as {
      body: Uint8Array;
    };
    const about = store.write.revision.get(row.number, row.winner) as {
      type: string | null;
    };
    return edit(
      store,
      target,
      {
        ...emptyDocument(false),
        body: Buffer.from(body),
        type: about.type ?? undefined,
      },
      targetRev,
    );
  });
  return json(
    201,
    { ok: true, id: target, rev },
    {
      etag: `"${rev}"`,
      location: `/${idInUrl(store.name)}/${idInUrl(target)}`,
    },
  );
}

function readDestination(
  destination: string | undefined,
): [string, Revision | undefined] {
  if (destination === undefined) {
    throw new Refusal(
      "bad_request",
      "Destination header is mandatory for COPY.",
    );
  }
  const [id, rev] = destination.split("?rev=");
  return [
    decodeURIComponent(id!),
    rev === undefined ? undefined : parseRevision(rev),
  ];
}

function namedRevision(request: StoreRequest): Revision | undefined {
  const named = request.query.rev ?? request.ifMatch?.replace(/^"|"$/g, "");
  return named === undefined ? undefined : parseRevision(named);
}

function emptyDocument(deleted: boolean): IncomingDocument {
  return {
    id: undefined,
    rev: undefined,
    deleted,
    history: undefined,
    body: Buffer.alloc(0),
    type: undefined,
  };
}
