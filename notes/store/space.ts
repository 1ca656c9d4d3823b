import { fileBytes } from "./administration.ts";
import type { Answer, Piece } from "./answer.ts";
import { pastTotals } from "./history.ts";
import type { Store } from "./store.ts";

const ROWS_PER_STEP = 500;
const kinds = { plain: "notes", newnote: "notes", notes: "notes" } as const;

interface Part {
  count: number;
  bytes: number;
}

interface HeldRevision {
  readonly row: number;
  readonly id: string;
  readonly type: string | null;
  readonly leaf: number;
  readonly deleted: number;
  readonly size: number;
  /** 1 if the history keeps this superseded version. */
  readonly kept: number;
}

/**
 * The disk usage of a database, in bytes: the ids and sizes of the chunks, then totals. `history` counts all past versions
 * that are kept, `superseded` those that a compaction removes, `free` the empty pages of the file.
 */
export function space(store: Store): Answer {
  return { status: 200, pieces: measure(store) };
}

function* measure(store: Store): Generator<Piece, void> {
  const parts = {
    notes: { count: 0, bytes: 0 },
    chunks: { count: 0, bytes: 0 },
    other: { count: 0, bytes: 0 },
    superseded: { count: 0, bytes: 0 },
  };
  yield '{"chunkSizes":[';
  let last = 0;
  for (;;) {
    const page = revisionsAfter(store, last);
    for (const revision of page) {
      const part = partOf(revision);
      if (part === undefined) {
        continue;
      }
      if (part === "chunks") {
        yield `${parts.chunks.count === 0 ? "" : ","}\n${JSON.stringify([revision.id, revision.size])}`;
      }
      add(parts[part], revision.size);
    }
    if (page.length < ROWS_PER_STEP) {
      break;
    }
    last = page.at(-1)!.row;
    yield "";
  }
  const totals = {
    ...parts,
    history: pastTotals(store),
    file: fileBytes(store),
    free: freeBytes(store),
  };
  yield `\n],${JSON.stringify(totals).slice(1)}\n`;
}

function revisionsAfter(store: Store, row: number): HeldRevision[] {
  return store.read
    .other(
      `SELECT r.rowid AS row, d.id, r.type, r.leaf, r.deleted, r.size,
         r.leaf = 0 AND EXISTS (SELECT 1 FROM history h WHERE h.document = r.document AND h.rev = r.rev AND h.until IS NOT NULL) AS kept
       FROM revisions r JOIN documents d ON d.number = r.document
       WHERE r.rowid > ? ORDER BY r.rowid LIMIT ${ROWS_PER_STEP}`,
    )
    .all(row) as unknown as HeldRevision[];
}

function partOf({
  type,
  leaf,
  deleted,
  kept,
}: HeldRevision): "notes" | "chunks" | "other" | "superseded" | undefined {
  // Counted with the history.
  if (kept === 1) {
    return undefined;
  }
  if (leaf === 0) {
    return "superseded";
  }
  if (deleted === 1) {
    return "other";
  }
  if (type === "leaf") {
    return "chunks";
  }
  return kinds[type as keyof typeof kinds] ?? "other";
}

function add(part: Part, bytes: number): void {
  part.count += 1;
  part.bytes += bytes;
}

function freeBytes(store: Store): number {
  const number = (name: string): number =>
    Number(Object.values(store.read.other(`PRAGMA ${name}`).get()!)[0]);
  return number("freelist_count") * number("page_size");
}
