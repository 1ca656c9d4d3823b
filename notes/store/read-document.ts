import { randomBytes } from "node:crypto";
import { Refusal } from "../refusal.ts";
import type { Answer, Piece } from "./answer.ts";
import { documentPieces, storedPieces, type Extras } from "./assemble.ts";
import type { StoreRequest } from "./protocol.ts";
import { flag, jsonParameter } from "./query.ts";
import {
  compareRevisions,
  etagOf,
  leavesOf,
  parseRevision,
  revisionText,
  stateOf,
} from "./revisions.ts";
import { treeOf, type DocumentRow, type Store } from "./store.ts";

/** Reads one document, one of its revisions, or several (`open_revs`). */
export function getDocument(store: Store, request: StoreRequest): Answer {
  const { query } = request;
  const row = store.read.document.get(request.id!) as unknown as
    DocumentRow | undefined;
  if (query.open_revs !== undefined) {
    return openRevisions(store, request, row);
  }
  const requestedRev =
    query.rev === undefined ? undefined : parseRevision(query.rev);
  if (row === undefined) {
    throw new Refusal("not_found", "missing");
  }
  if (requestedRev === undefined && row.deleted === 1) {
    throw new Refusal("not_found", "deleted");
  }
  const rev =
    requestedRev === undefined
      ? row.winner
      : pick(row, revisionText(requestedRev), query);
  const extras = extrasOf(query);
  const pieces = storedPieces(store, row, rev, extras);
  if (pieces === undefined) {
    throw new Refusal("not_found", "missing");
  }
  const etag = etagOf(rev);
  // These members can change while the revision does not.
  const cacheable =
    !extras.revsInfo &&
    !extras.conflicts &&
    !extras.deletedConflicts &&
    !extras.localSeq;
  if (cacheable && request.ifNoneMatch?.split(/[, ]+/).includes(etag)) {
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
  if (!flag(query, "latest")) {
    return rev;
  }
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
      for (const found of latest.length > 0 ? latest : [rev]) {
        revs.add(found);
      }
    }
  }
  // As in CouchDB, the other members that a document can have are only in the answer for one revision.
  const extras = { revs: flag(query, "revs") };
  const found = function* (): Generator<Found> {
    for (const rev of revs) {
      const pieces =
        row === undefined ? undefined : documentPieces(store, row, rev, extras);
      yield { rev, pieces };
    }
  };
  // As in CouchDB, which prefers JSON in `_bulk_get` only.
  return request.accept?.includes("multipart/mixed") === true
    ? multipart(found())
    : { status: 200, pieces: listed(found()) };
}

interface Found {
  readonly rev: string;
  readonly pieces: readonly Piece[] | undefined;
}

function* listed(found: Iterable<Found>): Generator<Piece, void> {
  yield "[";
  let isFirst = true;
  for (const { rev, pieces } of found) {
    if (!isFirst) {
      yield ",";
    }
    isFirst = false;
    if (pieces === undefined) {
      yield `{"missing":"${rev}"}`;
    } else {
      yield '{"ok":';
      yield* pieces;
      yield "}";
    }
  }
  yield "]\n";
}

function multipart(found: Iterable<Found>): Answer {
  const boundary = randomBytes(16).toString("hex");
  return {
    status: 200,
    headers: { "content-type": `multipart/mixed; boundary="${boundary}"` },
    pieces: (function* (): Generator<Piece, void> {
      yield `--${boundary}`;
      for (const { rev, pieces } of found) {
        const error = pieces === undefined ? '; error="true"' : "";
        yield `\r\nContent-Type: application/json${error}\r\n\r\n`;
        if (pieces === undefined) {
          yield `{"missing":"${rev}"}`;
        } else {
          yield* pieces;
        }
        yield `\r\n--${boundary}`;
      }
      yield "--";
    })(),
  };
}
