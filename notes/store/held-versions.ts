import { Refusal } from "../refusal.ts";
import type { Answer, Piece } from "./answer.ts";
import { orReport, rowList, storedPieces, wrap } from "./assemble.ts";
import { checkedBody, type SummedBody } from "./checksum.ts";
import { stateOf } from "./revisions.ts";
import {
  treeOf,
  type DocumentRow,
  type Statements,
  type Store,
} from "./store.ts";

/** LiveSync's chunks: content-addressed and never changed, so they are read by id. */
export const FIRST_CHUNK = "h:";
export const AFTER_CHUNKS = "h;";

const PAGE_ROWS = 200;
const isNoChunk = `(d.id < '${FIRST_CHUNK}' OR d.id >= '${AFTER_CHUNKS}')`;

/** Bodies that compaction moves to the history while pages are read are found there. */
const sources = {
  revisions: `v.leaf FROM revisions v JOIN documents d ON d.number = v.document
    WHERE v.rowid > ? AND ${isNoChunk} AND LENGTH(v.body) > 0 ORDER BY v.rowid LIMIT ${PAGE_ROWS}`,
  history: `0 AS leaf FROM history v JOIN documents d ON d.number = v.document
    WHERE v.rowid > ? AND ${isNoChunk} AND v.body IS NOT NULL ORDER BY v.rowid LIMIT ${PAGE_ROWS}`,
} as const;

interface Held extends SummedBody {
  readonly row: number;
  readonly id: string;
  readonly rev: string;
  readonly leaf: number;
}

/** A page of all documents but chunks, and the start of the next one. */
export function notePage(
  store: Store,
  start: string,
): { readonly rows: readonly DocumentRow[]; readonly next: string | null } {
  const rows = store.read
    .other(
      `SELECT * FROM documents d WHERE d.id >= ? AND ${isNoChunk} ORDER BY d.id LIMIT ${PAGE_ROWS}`,
    )
    .all(
      start >= FIRST_CHUNK && start < AFTER_CHUNKS ? AFTER_CHUNKS : start,
    ) as unknown as DocumentRow[];
  const next = rows.length < PAGE_ROWS ? null : `${rows.at(-1)!.id}\0`;
  return { rows, next };
}

/** The newest change of any document but chunks. */
export function notesSequence(statements: Statements): number {
  const found = statements
    .other(
      `SELECT d.seq FROM documents d WHERE ${isNoChunk} ORDER BY d.seq DESC LIMIT 1`,
    )
    .get() as { seq: number } | undefined;
  return found?.seq ?? 0;
}

/**
 * A page of all stored versions of all documents but chunks: current, conflicted, superseded and past ones. Fails for a damaged current one,
 * whose chunks would otherwise count as unused until it is repaired. A damaged past one is lost: no backup has it, and its chunks are of no use.
 */
export function heldVersions(store: Store, start: string): Answer {
  const match = /^(?:(revisions|history)-(\d{1,15}))?$/.exec(start);
  if (match === null) {
    throw new Refusal(
      "query_parse_error",
      "`held` must be empty, or the `next` of an earlier answer.",
    );
  }
  const source = (match[1] ?? "revisions") as keyof typeof sources;
  return {
    status: 200,
    pieces: heldPage(store, source, Number(match[2] ?? 0)),
  };
}

function* heldPage(
  store: Store,
  source: keyof typeof sources,
  after: number,
): Generator<Piece, void> {
  if (source === "revisions" && after === 0) {
    yield* requireLeaves(store);
  }
  yield `{"notesSeq":${notesSequence(store.read)},"rows":[`;
  const page = store.read
    .other(
      `SELECT v.rowid AS row, d.id, v.rev, v.body, ${store.read.sum}, ${sources[source]}`,
    )
    .all(after) as unknown as Held[];
  yield* rowList(page, (held) => {
    const read = () =>
      wrap(held.id, held.rev, checkedBody(held, held.id, held.rev), "");
    return held.leaf === 1 ? read() : orReport(store, read, undefined);
  });
  const next =
    page.length === PAGE_ROWS
      ? `${source}-${page.at(-1)!.row}`
      : source === "revisions"
        ? "history-0"
        : null;
  yield `],"next":${JSON.stringify(next)}}\n`;
}

/** Throws for a current version whose row the file has lost: the list would be without it. */
function* requireLeaves(store: Store): Generator<Piece, void> {
  let start: string | null = "";
  while (start !== null) {
    const { rows, next } = notePage(store, start);
    for (const row of rows) {
      for (const { rev } of stateOf(treeOf(row)).leaves) {
        if (store.read.revision.get(row.number, rev) === undefined) {
          storedPieces(store, row, rev);
        }
      }
    }
    start = next;
    yield "";
  }
}
