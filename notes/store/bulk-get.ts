import { randomBytes } from "node:crypto";
import { Refusal } from "../refusal.ts";
import type { Answer, Piece } from "./answer.ts";
import { documentPieces } from "./assemble.ts";
import { checkId } from "./document-ids.ts";
import type { StoreRequest } from "./protocol.ts";
import { bodyObject, flag } from "./query.ts";
import { leavesOf, parseRevision, revisionText, stateOf } from "./revisions.ts";
import { treeOf, type DocumentRow, type Store } from "./store.ts";

/** One document of a `_bulk_get` answer: its pieces, or an error. */
type Found =
  | { readonly pieces: readonly Piece[] }
  | {
      readonly error: {
        readonly rev: unknown;
        readonly reason: string;
        readonly id: unknown;
        readonly error: string;
      };
    };

/** Reads many documents, each in the requested revision. */
export function bulkGet(store: Store, request: StoreRequest): Answer {
  const { docs } = bodyObject(request.body);
  if (docs === undefined) {
    throw new Refusal("bad_request", "Missing JSON list of 'docs'.");
  }
  if (!Array.isArray(docs)) {
    throw new Refusal("bad_request", "`docs` parameter must be an array.");
  }
  const type = MULTIPART.find((each) =>
    accepts(request, [each, ANY_MULTIPART]),
  );
  if (type !== undefined && !accepts(request, JSON_TYPES)) {
    return multipart(store, request, docs, type);
  }
  return { status: 200, pieces: results(store, request, docs) };
}

const MULTIPART = ["multipart/mixed", "multipart/related"];
const ANY_MULTIPART = "multipart/*";
const JSON_TYPES = ["application/json", "application/*", "*/*"];

function accepts({ accept }: StoreRequest, types: readonly string[]): boolean {
  return accept?.some((type) => types.includes(type)) === true;
}

function* results(
  store: Store,
  request: StoreRequest,
  docs: readonly unknown[],
): Generator<Piece, void> {
  yield '{"results":[';
  for (const [index, wanted] of docs.entries()) {
    const { id = null } = (wanted ?? {}) as { id?: unknown };
    yield `${index > 0 ? "," : ""}{"id":${JSON.stringify(id)},"docs":[`;
    for (const [at, found] of lookUp(store, request, wanted).entries()) {
      if (at > 0) {
        yield ",";
      }
      if ("error" in found) {
        yield JSON.stringify({ error: found.error });
      } else {
        yield '{"ok":';
        yield* found.pieces;
        yield "}";
      }
    }
    yield "]}";
    yield "";
  }
  yield "]}\n";
}

function multipart(
  store: Store,
  request: StoreRequest,
  docs: readonly unknown[],
  type: string,
): Answer {
  const boundary = `--${randomBytes(16).toString("hex")}`;
  return {
    status: 200,
    headers: { "content-type": `${type}; boundary="${boundary}"` },
    pieces: (function* (): Generator<Piece, void> {
      for (const wanted of docs) {
        for (const found of lookUp(store, request, wanted)) {
          const error = "error" in found ? '; error="true"' : "";
          yield `\r\n--${boundary}\r\nContent-Type: application/json${error}\r\n\r\n`;
          if ("error" in found) {
            yield JSON.stringify(found.error);
          } else {
            yield* found.pieces;
          }
        }
      }
      yield `\r\n--${boundary}--\r\n`;
    })(),
  };
}

function lookUp(
  store: Store,
  request: StoreRequest,
  wanted: unknown,
): readonly Found[] {
  const { id, rev } = (wanted ?? {}) as { id?: unknown; rev?: unknown };
  if (typeof id !== "string") {
    return [failed(null, null, "bad_request", "document id missed")];
  }
  try {
    checkId(id);
  } catch (failure) {
    if (!(failure instanceof Refusal)) {
      throw failure;
    }
    return [failed(null, id, failure.code, failure.message)];
  }
  let requestedRev: string | undefined;
  try {
    requestedRev =
      rev === undefined ? undefined : revisionText(parseRevision(rev));
  } catch (failure) {
    if (!(failure instanceof Refusal)) {
      throw failure;
    }
    return [failed(rev, id, failure.code, failure.message)];
  }
  const row = store.read.document.get(id) as unknown as DocumentRow | undefined;
  const revs = row === undefined ? [] : revisionsOf(row, requestedRev, request);
  const found = revs
    .map((each) =>
      documentPieces(store, row!, each, {
        revs: flag(request.query, "revs"),
      }),
    )
    .filter((pieces) => pieces !== undefined);
  if (found.length === 0) {
    return [failed(requestedRev ?? "undefined", id, "not_found", "missing")];
  }
  return found.map((pieces) => ({ pieces }));
}

function revisionsOf(
  row: DocumentRow,
  requestedRev: string | undefined,
  request: StoreRequest,
): string[] {
  if (requestedRev === undefined) {
    return stateOf(treeOf(row)).leaves.map((leaf) => leaf.rev);
  }
  if (!flag(request.query, "latest")) {
    return [requestedRev];
  }
  return leavesOf(treeOf(row), requestedRev);
}

function failed(
  rev: unknown,
  id: unknown,
  error: string,
  reason: string,
): Found {
  return { error: { rev, reason, id, error } };
}
