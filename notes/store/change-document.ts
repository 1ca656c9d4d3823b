import { Refusal } from "../refusal.ts";
import type { IncomingDocument } from "./incoming.ts";
import { keepBody, recordEnd, recordStart } from "./record-history.ts";
import {
  graft,
  historyOf,
  newHash,
  revisionText,
  stateOf,
  type Revision,
} from "./revisions.ts";
import { treeOf, type DocumentRow, type Store } from "./store.ts";

const conflict = (): Refusal =>
  new Refusal("conflict", "Document update conflict.");

/** Writes an edit, which must name its parent leaf. Returns the new revision; throws 409 otherwise. Call within a transaction. */
export function edit(
  store: Store,
  id: string,
  document: IncomingDocument,
  rev: Revision | undefined = document.rev,
): string {
  const row = rowOf(store, id);
  const parent = parentOf(row, rev, document.deleted);
  const [generation, parentText] =
    parent === undefined ? [0, ""] : [parent.pos, revisionText(parent)];
  const hash = newHash(document.deleted, parentText, document.body);
  const ids = parent === undefined ? [hash] : [hash, parent.hash];
  if (!insert(store, row, id, { start: generation + 1, ids }, document)) {
    // The same edit of the same parent already exists and was edited or deleted since.
    throw conflict();
  }
  return `${generation + 1}-${hash}`;
}

/** Writes a replicated revision with its history; an existing one is unchanged. Call within a transaction. */
export function replicate(
  store: Store,
  id: string,
  document: IncomingDocument,
): string {
  const { rev, history } = document;
  if (rev === undefined && history === undefined) {
    throw new Refusal(
      "bad_request",
      "When `new_edits: false`, the document needs `_rev` or `_revisions` specified",
    );
  }
  // If the two differ, CouchDB uses the history.
  const path = history ?? { start: rev!.pos, ids: [rev!.hash] };
  if (path.start < 1) {
    throw new Refusal("bad_request", "Invalid rev format");
  }
  insert(store, rowOf(store, id), id, path, document);
  return `${path.start}-${path.ids[0]!}`;
}

function rowOf(store: Store, id: string): DocumentRow | undefined {
  return store.write.document.get(id) as unknown as DocumentRow | undefined;
}

function parentOf(
  row: DocumentRow | undefined,
  rev: Revision | undefined,
  deletes: boolean,
): Revision | undefined {
  if (row === undefined) {
    if (rev !== undefined) {
      throw conflict();
    }
    return undefined;
  }
  if (rev !== undefined) {
    const named = revisionText(rev);
    const leaf = stateOf(treeOf(row)).leaves.find(
      (candidate) => candidate.rev === named,
    );
    if (leaf === undefined || leaf.deleted) {
      throw conflict();
    }
    return rev;
  }
  // A deleted document may be recreated; the new revision follows the deletion.
  if (row.deleted === 0 || deletes) {
    throw conflict();
  }
  const [pos, hash] = row.winner.split(/-(.*)/s);
  return { pos: Number(pos), hash: hash! };
}

/** Stores a path and the body of its newest revision. False when that revision already exists and its history adds nothing. */
function insert(
  store: Store,
  row: DocumentRow | undefined,
  id: string,
  path: { readonly start: number; readonly ids: readonly string[] },
  document: IncomingDocument,
): boolean {
  const { totals } = store;
  const rev = `${path.start}-${path.ids[0]!}`;
  const before = row === undefined ? [] : treeOf(row);
  const oldLeaves = row === undefined ? [] : stateOf(before).leaves;
  // The result of merge() does not show this: it reports a second root as an internal node too.
  const known = historyOf(before, rev);
  const { tree, stemmed } = graft(
    before,
    path,
    oldLeaves.find((leaf) => leaf.rev === rev)?.deleted ?? document.deleted,
    store.settings.revsLimit,
  );
  const state = stateOf(tree);
  if (
    known !== undefined &&
    historyOf(tree, rev)?.ids.length === known.ids.length &&
    state.leaves.length === oldLeaves.length
  ) {
    return false;
  }
  const conflicts = state.leaves.filter(
    (leaf) => !leaf.deleted && leaf.rev !== state.winner,
  ).length;
  // Several revisions of one document in a request are one change.
  const again = row !== undefined && row.seq > store.committedSeq;
  if (!again || row.seq !== totals.updateSeq) {
    totals.updateSeq += 1;
  }
  const number = writeDocument(store, row, id, [
    totals.updateSeq,
    state.winner,
    state.deleted ? 1 : 0,
    conflicts,
    JSON.stringify(tree),
  ]);
  countDocument(totals, row, state.deleted);

  const leaves = new Set(state.leaves.map((leaf) => leaf.rev));
  if (known === undefined) {
    writeRevision(store, number, rev, document);
  }
  for (const leaf of [...oldLeaves.map((each) => each.rev), rev]) {
    if (!leaves.has(leaf)) {
      retire(store, number, leaf);
    }
  }
  for (const old of stemmed) {
    drop(store, number, old);
  }
  return true;
}

/** Returns the number of the document's row. */
function writeDocument(
  { write }: Store,
  row: DocumentRow | undefined,
  id: string,
  columns: readonly [number, string, number, number, string],
): number {
  if (row === undefined) {
    return Number(write.insertDocument.run(id, ...columns).lastInsertRowid);
  }
  write.updateDocument.run(row.number, ...columns);
  return row.number;
}

function countDocument(
  totals: Store["totals"],
  before: DocumentRow | undefined,
  isDeleted: boolean,
): void {
  if (before !== undefined) {
    totals[before.deleted === 1 ? "deleted" : "documents"] -= 1;
  }
  totals[isDeleted ? "deleted" : "documents"] += 1;
}

function writeRevision(
  store: Store,
  number: number,
  rev: string,
  { deleted, type, body }: IncomingDocument,
): void {
  const size = body.length;
  store.write.insertRevision.run(
    number,
    rev,
    deleted ? 1 : 0,
    type ?? null,
    size,
    body,
  );
  store.totals.liveBytes += size;
  recordStart(store, number, rev, { deleted, type, size });
}

function retire(store: Store, number: number, rev: string): void {
  const row = store.write.retireRevision.get(number, rev) as
    { size: number; type: string | null; deleted: number } | undefined;
  if (row === undefined) {
    return;
  }
  recordEnd(store, number, rev, row);
  store.totals.liveBytes -= row.size;
  store.totals.staleBytes += row.size;
}

function drop(store: Store, number: number, rev: string): void {
  keepBody(store, number, rev);
  const row = store.write.dropRevision.get(number, rev) as
    { size: number; leaf: number } | undefined;
  if (row === undefined) {
    return;
  }
  if (row.leaf === 1) {
    store.totals.liveBytes -= row.size;
  } else {
    store.totals.staleBytes -= row.size;
  }
}
