import type { Answer, Piece } from "./answer.ts";
import { documentPieces } from "./assemble.ts";
import { onMissingChunk } from "./collect.ts";
import { liveRows } from "./current-rows.ts";
import { count, flag, jsonParameter, withBody } from "./query.ts";
import type { StoreRequest } from "./protocol.ts";
import { committedSequence, sequenceToken } from "./sequence.ts";
import type { DocumentRow, Store } from "./store.ts";

const PAGE_ROWS = 200;

type Query = StoreRequest["query"];

/** All documents by id, in a range or by a list of keys. */
export function allDocs(store: Store, request: StoreRequest): Answer {
  const query = withBody(request);
  return { status: 200, pieces: view(store, query) };
}

// Parameters are read first, so that invalid ones are rejected before the response starts.
function view(store: Store, query: Query): Generator<Piece, void> {
  const keys = jsonParameter(query, "keys");
  const limit = count(query, "limit") ?? Infinity;
  const skip = count(query, "skip") ?? 0;
  if (Array.isArray(keys)) {
    return keyedView(store, query, keys, limit, skip);
  }
  return rangeView(store, query, readRange(query), limit, skip);
}

function* keyedView(
  store: Store,
  query: Query,
  keys: readonly unknown[],
  limit: number,
  skip: number,
): Generator<Piece, void> {
  yield heading(store, query, "null");
  const ordered = flag(query, "descending") ? keys.toReversed() : keys;
  let first = true;
  for (const key of ordered.slice(skip, skip + limit)) {
    yield first ? "" : ",\r\n";
    first = false;
    const row =
      typeof key === "string"
        ? (store.read.document.get(key) as unknown as DocumentRow | undefined)
        : undefined;
    if (row === undefined) {
      if (typeof key === "string" && flag(query, "include_docs")) {
        onMissingChunk(store, key);
      }
      yield `{"key":${JSON.stringify(key)},"error":"not_found"}`;
    } else {
      yield* rowPieces(store, query, row);
    }
  }
  yield "\r\n]}\n";
}

function* rangeView(
  store: Store,
  query: Query,
  range: Range,
  limit: number,
  skip: number,
): Generator<Piece, void> {
  const before = rowsBefore(store, range);
  yield heading(store, query, String(before + skip));
  let left = limit;
  let toSkip = skip;
  let first = true;
  for (const row of limit > 0 ? rowsIn(store, range, skip + limit) : []) {
    if (toSkip > 0) {
      toSkip -= 1;
      yield "";
      continue;
    }
    if (!first) {
      yield ",\r\n";
    }
    first = false;
    yield* rowPieces(store, query, row);
    left -= 1;
    if (left === 0) {
      break;
    }
  }
  yield "\r\n]}\n";
}

function heading(store: Store, query: Query, offset: string): string {
  const total = (store.read.totals.get() as { documents: number }).documents;
  const sequence = flag(query, "update_seq")
    ? `"update_seq":"${sequenceToken(store, committedSequence(store))}",`
    : "";
  return `{"total_rows":${total},"offset":${offset},${sequence}"rows":[\r\n`;
}

function* rowPieces(
  store: Store,
  query: Query,
  row: DocumentRow,
): Generator<Piece> {
  const id = JSON.stringify(row.id);
  const deleted = row.deleted === 1 ? ',"deleted":true' : "";
  // Read before the first piece is sent, as a slow client could have its body removed in between.
  const document = includedDocument(store, query, row);
  yield `{"id":${id},"key":${id},"value":{"rev":"${row.winner}"${deleted}}`;
  yield* document;
  yield "}";
}

function includedDocument(
  store: Store,
  query: Query,
  row: DocumentRow,
): readonly Piece[] {
  if (!flag(query, "include_docs")) {
    return [];
  }
  const pieces =
    row.deleted === 1
      ? undefined
      : documentPieces(store, row, row.winner, {
          conflicts: flag(query, "conflicts"),
        });
  return [',"doc":', ...(pieces ?? ["null"])];
}

interface Range {
  readonly descending: boolean;
  readonly low: string | undefined;
  readonly lowIncluded: boolean;
  readonly high: string | undefined;
  readonly highIncluded: boolean;
}

function readRange(query: Query): Range {
  const descending = flag(query, "descending");
  // `null` is a key, too, which no document has.
  const ends =
    query.key === undefined
      ? { start: ["startkey", "start_key"], end: ["endkey", "end_key"] }
      : { start: ["key"], end: ["key"] };
  const start = jsonParameter(query, ...ends.start);
  const end = jsonParameter(query, ...ends.end);
  const inclusive = query.inclusive_end !== "false";
  const [low, high] = descending ? [end, start] : [start, end];
  return {
    descending,
    low: lowEnd(low),
    lowIncluded: descending ? inclusive : true,
    high: highEnd(high),
    highIncluded: descending ? true : inclusive,
  };
}

// Keys of other types sort before (null, numbers) or after (arrays, objects) all strings.
function lowEnd(key: unknown): string | undefined {
  if (typeof key === "string" || key === undefined) {
    return key;
  }
  return typeof key === "object" && key !== null ? "\u{10ffff}" : undefined;
}

function highEnd(key: unknown): string | undefined {
  if (typeof key === "string" || key === undefined) {
    return key;
  }
  return typeof key === "object" && key !== null ? undefined : "";
}

function conditions(range: Range): { sql: string; values: string[] } {
  const parts = ["deleted = 0"];
  const values: string[] = [];
  if (range.low !== undefined) {
    parts.push(`id ${range.lowIncluded ? ">=" : ">"} ?`);
    values.push(range.low);
  }
  if (range.high !== undefined) {
    parts.push(`id ${range.highIncluded ? "<=" : "<"} ?`);
    values.push(range.high);
  }
  return { sql: parts.join(" AND "), values };
}

/** The number of documents before the range: CouchDB's `offset`. */
function rowsBefore(store: Store, range: Range): number {
  const bound = range.descending ? range.high : range.low;
  if (bound === undefined) {
    return 0;
  }
  const beyond = range.descending
    ? range.highIncluded
      ? ">"
      : ">="
    : range.lowIncluded
      ? "<"
      : "<=";
  const row = store.read
    .other(
      `SELECT COUNT(*) AS n FROM documents WHERE deleted = 0 AND id ${beyond} ?`,
    )
    .get(bound) as { n: number };
  return row.n;
}

function* rowsIn(
  store: Store,
  range: Range,
  wanted: number,
): Generator<DocumentRow> {
  let { low, lowIncluded, high, highIncluded } = range;
  const rows = Math.min(PAGE_ROWS, wanted);
  for (;;) {
    const { sql, values } = conditions({
      ...range,
      low,
      lowIncluded,
      high,
      highIncluded,
    });
    const page = store.read
      .other(
        `SELECT * FROM documents WHERE ${sql} ORDER BY id ${range.descending ? "DESC" : ""} LIMIT ?`,
      )
      .all(...values, rows) as unknown as DocumentRow[];
    yield* liveRows(store, page);
    // A document of a full page may have been deleted meanwhile: clients take fewer rows than requested for the end.
    if (page.length < rows) {
      return;
    }
    const last = page.at(-1)!.id;
    if (range.descending) {
      [high, highIncluded] = [last, false];
    } else {
      [low, lowIncluded] = [last, false];
    }
  }
}
