import { Refusal } from "../refusal.ts";
import { json, type Answer, type Piece } from "./answer.ts";
import { orReport, rowList, storedPieces, wrap } from "./assemble.ts";
import { checkedBody, type SummedBody } from "./checksum.ts";
import { onMissingChunk } from "./collect.ts";
import { heldVersions, notePage } from "./held-versions.ts";
import { firstKeptInstant, keptInstant } from "./kept-instants.ts";
import type { StoreRequest } from "./protocol.ts";
import { bodyObject, count } from "./query.ts";
import { compareRevisions } from "./revisions.ts";
import type { DocumentRow, Store } from "./store.ts";

const MAX_ROWS = 2000;

/** A version of a note and when it was current, in milliseconds since 1970. */
interface Version {
  readonly rev: string;
  readonly since: number;
  /** Null while it is current. */
  readonly until: number | null;
}

/**
 * The history of a vault. Without parameters: its range and size. With `at`: every note as of then; `startkey` and `limit` page
 * through them. With `id`: all versions of one document. With `held`: every stored version. A body `{"chunks": [ids]}` requests chunks, deleted ones too.
 */
export function history(store: Store, request: StoreRequest): Answer {
  const { query } = request;
  if (request.body !== undefined) {
    return chunks(store, request);
  }
  if (query.id !== undefined) {
    return versions(store, query.id);
  }
  if (query.held !== undefined) {
    return heldVersions(store, query.held);
  }
  if (query.at !== undefined) {
    return asOf(store, request, query.at);
  }
  return json(200, reach(store));
}

/** The start of the history and its size. */
function reach(store: Store): Readonly<Record<string, number>> {
  const now = Date.now();
  const from = firstKeptInstant(historyFrom(store), now);
  return { from, now, ...pastTotals(store) };
}

/** The number of past versions and their bytes. */
export function pastTotals(store: Store): {
  readonly versions: number;
  readonly bytes: number;
} {
  return store.read
    .other(
      "SELECT COUNT(*) AS versions, COALESCE(SUM(size), 0) AS bytes FROM history WHERE until IS NOT NULL",
    )
    .get() as { versions: number; bytes: number };
}

/** The time since which the history is complete, in milliseconds since 1970. */
export function historyFrom(store: Store): number {
  const row = store.read.property.get("history_from") as { value: string };
  return Number(row.value);
}

function asOf(store: Store, request: StoreRequest, text: string): Answer {
  const now = Date.now();
  const from = historyFrom(store);
  const wanted = /^\d+$/.test(text) ? Number(text) : Date.parse(text);
  if (Number.isNaN(wanted)) {
    throw new Refusal(
      "query_parse_error",
      "`at` must be a time such as 2026-11-22T18:00:00Z, or milliseconds since 1970.",
    );
  }
  const at = keptInstant(Math.min(wanted, now), now);
  if (at < from) {
    const first = new Date(firstKeptInstant(from, now)).toISOString();
    throw new Refusal("not_found", `The history goes back to ${first}.`);
  }
  const limit = Math.min(count(request.query, "limit") ?? MAX_ROWS, MAX_ROWS);
  const start = request.query.startkey ?? "";
  return { status: 200, pieces: notesAt(store, at, start, limit) };
}

function* notesAt(
  store: Store,
  at: number,
  start: string,
  limit: number,
): Generator<Piece, void> {
  yield `{"at":${at},"rows":[`;
  let rows = 0;
  let next: string | null = start;
  while (next !== null && rows < limit) {
    const page: ReturnType<typeof notePage> = notePage(store, next);
    next = page.next;
    for (const row of page.rows) {
      if (rows === limit) {
        next = row.id;
        break;
      }
      const version = versionAt(store, row.number, at);
      if (version === undefined) {
        continue;
      }
      const pieces = versionPieces(store, row, version);
      if (pieces === undefined) {
        continue;
      }
      yield rows === 0 ? "\n" : ",\n";
      yield* pieces;
      rows += 1;
    }
    yield "";
  }
  yield `\n],"next":${JSON.stringify(next)}}\n`;
}

/** The winning version at a time; undefined if it was deleted. */
function versionAt(
  store: Store,
  document: number,
  at: number,
): Version | undefined {
  const found = store.read
    .other(
      `SELECT rev, since, until FROM (${currentVersions} UNION ALL ${pastVersions}) WHERE since <= ?2 AND (until IS NULL OR until > ?2)`,
    )
    .all(document, at) as unknown as Version[];
  return found.toSorted((a, b) => compareRevisions(b.rev, a.rev))[0];
}

const IS_NOTE = "type IN ('plain', 'newnote', 'notes')";
/** A version from before the history counts as current from its start. */
const currentVersions = `SELECT rev, COALESCE((SELECT since FROM history WHERE history.document = revisions.document AND history.rev = revisions.rev), 0) AS since, NULL AS until FROM revisions WHERE document = ?1 AND leaf = 1 AND deleted = 0 AND ${IS_NOTE}`;
const pastVersions = `SELECT rev, since, until FROM history WHERE document = ?1 AND until > since AND ${IS_NOTE}`;

function versionPieces(
  store: Store,
  row: DocumentRow,
  version: Version,
): Piece[] | undefined {
  const { rev, since, until } = version;
  const head = `{"since":${since},"until":${until},`;
  return orReport(
    store,
    () => {
      const body = storedPieces(store, row, rev) ?? keptBody(store, row, rev);
      return body === undefined ? undefined : [`${head}"doc":`, ...body, "}"];
    },
    // Left out, it would count as a note that did not exist, which a restore deletes.
    [
      `${head}"damaged":true,"doc":`,
      ...wrap(row.id, rev, Buffer.alloc(0), ""),
      "}",
    ],
  );
}

function keptBody(
  store: Store,
  row: DocumentRow,
  rev: string,
): Piece[] | undefined {
  const kept = store.read
    .other(
      `SELECT body, ${store.read.sum} FROM history WHERE document = ? AND rev = ? AND body IS NOT NULL`,
    )
    .get(row.number, rev) as SummedBody | undefined;
  return kept === undefined
    ? undefined
    : wrap(row.id, rev, checkedBody(kept, row.id, rev), "");
}

function versions(store: Store, id: string): Answer {
  const row = store.read.document.get(id) as unknown as DocumentRow | undefined;
  if (row === undefined) {
    throw new Refusal("not_found", "missing");
  }
  const all = store.read
    .other(
      `SELECT rev, since, until FROM (${currentVersions} UNION ALL ${pastVersions}) ORDER BY since DESC, rev DESC`,
    )
    .all(row.number) as unknown as Version[];
  return { status: 200, pieces: versionList(store, row, all) };
}

function* versionList(
  store: Store,
  row: DocumentRow,
  all: readonly Version[],
): Generator<Piece, void> {
  yield `{"from":${historyFrom(store)},"rows":[`;
  yield* rowList(all, (version) => versionPieces(store, row, version));
  yield "]}\n";
}

function chunks(store: Store, request: StoreRequest): Answer {
  const { chunks: ids } = bodyObject(request.body);
  if (!Array.isArray(ids) || !ids.every((id) => typeof id === "string")) {
    throw new Refusal("bad_request", "`chunks` must be a list of ids.");
  }
  return { status: 200, pieces: chunkList(store, ids) };
}

function* chunkList(
  store: Store,
  ids: readonly string[],
): Generator<Piece, void> {
  yield '{"rows":[';
  yield* rowList(ids, (id) => {
    const row = store.read.document.get(id) as unknown as
      DocumentRow | undefined;
    if (row === undefined) {
      onMissingChunk(store, id);
      return undefined;
    }
    return orReport(store, () => anyBody(store, row), undefined);
  });
  yield "]}\n";
}

/** Any body of a chunk: its id is derived from its content, so all are equal. */
function anyBody(store: Store, row: DocumentRow): Piece[] | undefined {
  if (row.deleted === 0) {
    return storedPieces(store, row, row.winner);
  }
  const held = store.read
    .other(
      "SELECT rev FROM revisions WHERE document = ? AND deleted = 0 AND type = 'leaf' LIMIT 1",
    )
    .get(row.number) as { rev: string } | undefined;
  if (held !== undefined) {
    return storedPieces(store, row, held.rev);
  }
  const kept = store.read
    .other(
      "SELECT rev FROM history WHERE document = ? AND type = 'leaf' AND body IS NOT NULL LIMIT 1",
    )
    .get(row.number) as { rev: string } | undefined;
  return kept === undefined ? undefined : keptBody(store, row, kept.rev);
}
