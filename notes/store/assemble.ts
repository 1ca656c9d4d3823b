import type { Piece } from "./answer.ts";
import { historyOf, stateOf, type RevisionTree } from "./revisions.ts";
import { DamagedBody, isDamaged, type SummedBody } from "./checksum.ts";
import {
  reportFailure,
  treeOf,
  type DocumentRow,
  type Store,
} from "./store.ts";

/** The special members to add to a document. */
export interface Extras {
  readonly revs?: boolean;
  readonly revsInfo?: boolean;
  readonly conflicts?: boolean;
  readonly deletedConflicts?: boolean;
  readonly localSeq?: boolean;
}

/**
 * The JSON text of a document revision, in pieces; undefined when its body was deleted or never received. A damaged body counts as
 * missing, so that one does not keep devices from the other documents of an answer, and is reported.
 */
export function documentPieces(
  store: Store,
  row: DocumentRow,
  rev: string,
  extras: Extras,
): Piece[] | undefined {
  return orReport(
    store,
    () => storedPieces(store, row, rev, extras),
    undefined,
  );
}

/** What is read; `otherwise` for a damaged body, which is reported. */
export function orReport<T>(store: Store, read: () => T, otherwise: T): T {
  try {
    return read();
  } catch (failure) {
    if (!(failure instanceof DamagedBody)) {
      throw failure;
    }
    reportFailure(store, failure.message, failure);
    return otherwise;
  }
}

/** The same. Throws a DamagedBody. */
export function storedPieces(
  store: Store,
  row: DocumentRow,
  rev: string,
  extras: Extras = {},
): Piece[] | undefined {
  const about = store.read.revision.get(row.number, rev);
  const found = store.read.body.get(row.number, rev) as SummedBody | undefined;
  const isLost = found === undefined && isCurrentLeaf(store, row, rev);
  if (isLost || (found !== undefined && isDamaged(found))) {
    store.damaged.add(`${row.number} ${rev}`);
    throw new DamagedBody(row.id, rev);
  }
  if (about === undefined || found === undefined) {
    return undefined;
  }
  return wrap(
    row.id,
    rev,
    found.body,
    (about.deleted === 1 ? ',"_deleted":true' : "") +
      extraMembers(store, row, rev, extras),
  );
}

/** The body of a leaf is never removed alone. The row may be older than a removal of the whole document. */
function isCurrentLeaf(store: Store, { id, number }: DocumentRow, rev: string) {
  const now = store.read.document.get(id) as unknown as DocumentRow | undefined;
  return (
    now?.number === number &&
    stateOf(treeOf(now)).leaves.some((leaf) => leaf.rev === rev)
  );
}

/** `{"_id":…,"_rev":…` around the stored members. */
export function wrap(
  id: string,
  rev: string,
  body: Uint8Array,
  after: string,
): Piece[] {
  const head = `{"_id":${JSON.stringify(id)},"_rev":"${rev}"`;
  return body.length === 0
    ? [`${head}${after}}`]
    : [`${head},`, body, `${after}}`];
}

/** The document as a value, for selectors. */
export function documentValue(
  pieces: readonly Piece[],
): Record<string, unknown> {
  return JSON.parse(piecesText(pieces)) as Record<string, unknown>;
}

export function piecesText(pieces: readonly Piece[]): string {
  return pieces
    .map((piece) =>
      typeof piece === "string"
        ? piece
        : Buffer.from(
            piece.buffer,
            piece.byteOffset,
            piece.byteLength,
          ).toString(),
    )
    .join("");
}

function extraMembers(
  store: Store,
  row: DocumentRow,
  rev: string,
  extras: Extras,
): string {
  const wantsTree =
    extras.revs === true ||
    extras.revsInfo === true ||
    extras.conflicts === true ||
    extras.deletedConflicts === true;
  let text = "";
  if (wantsTree) {
    const tree = readTree(row);
    if (extras.revs === true) {
      text += `,"_revisions":${JSON.stringify(historyOf(tree, rev))}`;
    }
    if (extras.revsInfo === true) {
      text += `,"_revs_info":${JSON.stringify(revsInfo(store, row, tree, rev))}`;
    }
    text += conflictMembers(tree, rev, extras);
  }
  if (extras.localSeq === true) {
    text += `,"_local_seq":${row.seq}`;
  }
  return text;
}

const trees = new WeakMap<DocumentRow, RevisionTree>();

/** The tree of a row, parsed once: each of thousands of leaves may be read. */
function readTree(row: DocumentRow): RevisionTree {
  const tree = trees.get(row) ?? treeOf(row);
  trees.set(row, tree);
  return tree;
}

function conflictMembers(
  tree: RevisionTree,
  rev: string,
  extras: Extras,
): string {
  if (extras.conflicts !== true && extras.deletedConflicts !== true) {
    return "";
  }
  const others = stateOf(tree).leaves.filter((leaf) => leaf.rev !== rev);
  const list = (name: string, deleted: boolean): string => {
    const revs = others
      .filter((leaf) => leaf.deleted === deleted)
      .map((leaf) => leaf.rev);
    return revs.length === 0 ? "" : `,"${name}":${JSON.stringify(revs)}`;
  };
  return (
    (extras.conflicts === true ? list("_conflicts", false) : "") +
    (extras.deletedConflicts === true ? list("_deleted_conflicts", true) : "")
  );
}

function revsInfo(
  store: Store,
  row: DocumentRow,
  tree: RevisionTree,
  rev: string,
): { rev: string; status: string }[] {
  const history = historyOf(tree, rev);
  return (history?.ids ?? []).map((hash, index) => {
    const ancestor = `${history!.start - index}-${hash}`;
    const about = store.read.revision.get(row.number, ancestor);
    const status =
      about === undefined
        ? "missing"
        : about.deleted === 1
          ? "deleted"
          : "available";
    return { rev: ancestor, status };
  });
}

/** The rows of a JSON list, one a line, as they are read; an item without pieces has no row. */
export function* rowList<T>(
  items: Iterable<T>,
  piecesOf: (item: T) => readonly Piece[] | undefined,
): Generator<Piece, void> {
  let first = true;
  for (const item of items) {
    const pieces = piecesOf(item);
    if (pieces !== undefined) {
      yield first ? "\n" : ",\n";
      first = false;
      yield* pieces;
    }
  }
  yield "\n";
}
