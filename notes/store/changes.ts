import { isRecord } from "../../core/json.ts";
import { Refusal } from "../refusal.ts";
import type { Answer, Piece } from "./answer.ts";
import { documentPieces, documentValue } from "./assemble.ts";
import { currentRows } from "./current-rows.ts";
import { bodyJson, bodyObject, flag, jsonParameter } from "./query.ts";
import { openPrecheck } from "./precheck.ts";
import { readFields, type Projection } from "./projection.ts";
import type { ChangesEnd, StoreRequest } from "./protocol.ts";
import { stateOf } from "./revisions.ts";
import { compileSelector } from "./selector.ts";
import { committedSequence, readSince, sequenceToken } from "./sequence.ts";
import { treeOf, type DocumentRow, type Store } from "./store.ts";

/** Rows read at a time; other requests run in between. */
const PAGE_ROWS = 200;

interface Filter {
  /** Which of the listed revisions of a document pass; `listed` is called only if some may. */
  readonly passing: (row: DocumentRow, listed: () => string[]) => string[];
  /** The members to include of a document; all when undefined. */
  readonly projection: Projection | undefined;
  /** CouchDB counts pending changes differently for filters that it does not run over the whole feed. */
  readonly pendingCountsAll: boolean;
}

/** One pass over the changes feed: the rows since `since`, and its end position. */
export function changes(store: Store, request: StoreRequest): Answer {
  const { query } = request;
  const committed = committedSequence(store);
  const since = readSince(store, query.since, committed);
  const limit = readLimit(query.limit);
  const style = query.style ?? "main_only";
  if (style !== "main_only" && style !== "all_docs") {
    throw new Refusal(
      "bad_request",
      "The `style` parameter must be main_only or all_docs.",
    );
  }
  const filter = readFilter(store, request);
  // Even a body that no filter reads must be JSON.
  if (filter === undefined && request.body !== undefined) {
    bodyJson(request.body);
  }
  return {
    status: 200,
    pieces: changesRows(store, request, {
      since,
      committed,
      limit,
      allLeaves: style === "all_docs",
      filter,
    }),
  };
}

interface Pass {
  readonly since: number;
  /** The update sequence up to which the answer extends. */
  committed: number;
  readonly limit: number;
  readonly allLeaves: boolean;
  readonly filter: Filter | undefined;
}

function* changesRows(
  store: Store,
  request: StoreRequest,
  pass: Pass,
): Generator<Piece, ChangesEnd> {
  const { query, feed } = request;
  const descending = flag(query, "descending");
  const interval = Number(query.seq_interval ?? 1);
  const lines = feed?.lines === true;
  let rows = 0;
  let last = pass.since;
  let lastGiven = pass.since;
  let full = false;
  for (const row of rowsBetween(store, pass, descending)) {
    const revs = passingRevisions(row, pass);
    if (rows >= pass.limit) {
      // As in CouchDB, a full answer also consumes the next row if the filter drops it.
      if (revs.length === 0 && pass.limit > 0) {
        last = row.seq;
      }
      full = true;
      break;
    }
    last = row.seq;
    if (revs.length === 0) {
      yield "";
      continue;
    }
    // CouchDB includes the sequence when the number of rows that may still follow, this one included, is a multiple of the interval.
    const remaining = (pass.limit % interval) - (rows % interval);
    const withSequence = !(interval > 1) || remaining % interval === 0;
    // Read before the first piece is sent, as a slow client could have its body removed in between.
    const document = flag(query, "include_docs")
      ? [',"doc":', ...includedDocument(store, row, request, pass.filter)]
      : [];
    if (!lines && rows > 0) {
      yield ",\r\n";
    }
    yield `{"seq":${withSequence ? `"${sequenceToken(store, row.seq)}"` : "null"},"id":${JSON.stringify(row.id)},"changes":[${revs.map((rev) => `{"rev":"${rev}"}`).join(",")}]`;
    if (row.deleted === 1) {
      yield ',"deleted":true';
    }
    yield* document;
    yield lines ? "}\n" : "}";
    rows += 1;
    lastGiven = row.seq;
  }
  const countFrom = rows >= pass.limit ? lastGiven : last;
  return {
    token: sequenceToken(store, last),
    // Not every change is a row: a new _security only raises the sequence, which CouchDB does not report here.
    seen: full ? last : pass.committed,
    rows,
    pending: pendingAfter(store, pass, rows, countFrom, descending),
  };
}

function* rowsBetween(
  store: Store,
  pass: Pass,
  descending: boolean,
): Generator<DocumentRow> {
  const sql = descending
    ? `SELECT * FROM documents WHERE seq < ? AND seq > ? ORDER BY seq DESC LIMIT ${PAGE_ROWS}`
    : `SELECT * FROM documents WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ${PAGE_ROWS}`;
  // CouchDB ignores `since` for a descending feed.
  let at = descending ? pass.committed + 1 : pass.since;
  for (;;) {
    if (!descending) {
      // A document that is written meanwhile moves to the end of the feed, and would otherwise be missing from the answer.
      pass.committed = committedSequence(store);
    }
    // Between two pages a write may have reopened the file, which ends statements prepared before.
    const page = store.read
      .other(sql)
      .all(at, descending ? 0 : pass.committed) as unknown as DocumentRow[];
    yield* currentRows(store, page);
    if (page.length < PAGE_ROWS) {
      return;
    }
    at = page.at(-1)!.seq;
  }
}

function passingRevisions(
  row: DocumentRow,
  { allLeaves, filter }: Pass,
): string[] {
  const listed = (): string[] =>
    allLeaves
      ? stateOf(treeOf(row)).leaves.map((leaf) => leaf.rev)
      : [row.winner];
  return filter === undefined ? listed() : filter.passing(row, listed);
}

function includedDocument(
  store: Store,
  row: DocumentRow,
  request: StoreRequest,
  filter: Filter | undefined,
): readonly Piece[] {
  const pieces = documentPieces(store, row, row.winner, {
    conflicts: flag(request.query, "conflicts"),
  });
  if (pieces === undefined) {
    return ["null"];
  }
  return filter?.projection === undefined
    ? pieces
    : [JSON.stringify(filter.projection(documentValue(pieces)))];
}

function pendingAfter(
  store: Store,
  pass: Pass,
  rows: number,
  last: number,
  descending: boolean,
): number {
  const countAfter = (seq: number): number =>
    (
      store.read
        .other("SELECT COUNT(*) AS n FROM documents WHERE seq > ? AND seq <= ?")
        .get(seq, pass.committed) as { n: number }
    ).n;
  if (descending) {
    return countAfter(0) - rows;
  }
  if (pass.filter?.pendingCountsAll === true) {
    // A document that is written meanwhile can have two rows.
    return Math.max(0, countAfter(pass.since) - rows);
  }
  return countAfter(last);
}

function readLimit(text: string | undefined): number {
  // CouchDB's own default, which seq_interval counts down from.
  if (text === undefined) {
    return 1e16;
  }
  if (!/^-?\d+$/.test(text)) {
    throw new Refusal(
      "bad_request",
      "The `limit` parameter must be an integer.",
    );
  }
  const limit = Number(text);
  return limit < 0 ? 1e16 : limit;
}

function readFilter(store: Store, request: StoreRequest): Filter | undefined {
  const { query, body } = request;
  switch (query.filter) {
    case undefined:
      return undefined;
    case "_selector":
      return selectorFilter(store, request);
    case "_doc_ids": {
      const given =
        body === undefined
          ? jsonParameter(query, "doc_ids")
          : bodyObject(body).doc_ids;
      if (!Array.isArray(given)) {
        throw new Refusal(
          "bad_request",
          "`doc_ids` filter parameter is not a list of doc ids.",
        );
      }
      const ids = new Set(given);
      return {
        passing: (row, listed) => (ids.has(row.id) ? listed() : []),
        projection: undefined,
        pendingCountsAll: true,
      };
    }
    case "_design":
      return {
        passing: (row, listed) =>
          row.id.startsWith("_design/") ? listed() : [],
        projection: undefined,
        pendingCountsAll: true,
      };
    case "_view":
      throw new Refusal(
        "not_implemented",
        "Design documents and their views are not supported; use filter=_selector or filter=_doc_ids.",
      );
    default:
      if (query.filter.startsWith("_")) {
        throw new Refusal("bad_request", "unknown builtin filter name");
      }
      throw new Refusal("not_found", "missing");
  }
}

function selectorFilter(store: Store, request: StoreRequest): Filter {
  if (request.body === undefined) {
    throw new Refusal(
      "bad_request",
      "Selector must be specified in POST payload",
    );
  }
  const { selector, fields } = bodyObject(request.body);
  if (!isRecord(selector)) {
    throw new Refusal("bad_request", "Selector error: expected a JSON object");
  }
  let compiled: ReturnType<typeof compileSelector>;
  try {
    compiled = compileSelector(selector);
  } catch (failure) {
    throw new Refusal("bad_request", (failure as Error).message);
  }
  const precheck = openPrecheck(store, compiled);
  // As in CouchDB, only a row of the winner alone shows the selector its conflicts.
  const conflicts = request.query.style !== "all_docs";
  const bodyMatches = (row: DocumentRow, rev: string): boolean => {
    const pieces = documentPieces(store, row, rev, { conflicts });
    return pieces !== undefined && compiled.matches(documentValue(pieces));
  };
  return {
    passing: (row, listed) =>
      listed().filter((rev) => precheck(row, rev) ?? bodyMatches(row, rev)),
    projection: readFields(fields),
    pendingCountsAll: false,
  };
}
