import { Refusal } from "../refusal.ts";
import { isDamaged, sumOf, type SummedBody } from "./checksum.ts";
import type { IncomingDocument } from "./incoming.ts";
import { keepBody, recordEnd, recordStart } from "./record-history.ts";
import {
  GrowingTree,
  newHash,
  parseRevision,
  revisionText,
  stateOf,
  type Revision,
  type RevisionPath,
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
  const change = new DocumentChange(store, id);
  const written = change.edit(document, rev);
  change.finish();
  return written;
}

/** Writes a replicated revision with its history; an existing one is unchanged. Call within a transaction. */
export function replicate(
  store: Store,
  id: string,
  document: IncomingDocument,
): string {
  const change = new DocumentChange(store, id);
  const written = change.replicate(document);
  change.finish();
  return written;
}

/** Revisions of one document that are written together: its tree is read and written once. Use within a transaction, and call `finish`. */
export class DocumentChange {
  readonly #store: Store;
  readonly #id: string;
  readonly #row: DocumentRow | undefined;
  /** Of the document's row, which is written last. */
  readonly #number: number;
  readonly #tree: GrowingTree;
  /** Revisions that were leaves before or were added. */
  readonly #candidates: string[];
  #changed = false;

  constructor(store: Store, id: string) {
    this.#store = store;
    this.#id = id;
    const row = store.write.document.get(id) as unknown as
      DocumentRow | undefined;
    this.#row = row;
    this.#number =
      row?.number ?? Number(store.write.nextNumber.get()!["number"]);
    const tree = row === undefined ? [] : treeOf(row);
    this.#candidates =
      row === undefined ? [] : stateOf(tree).leaves.map((leaf) => leaf.rev);
    this.#tree = new GrowingTree(tree);
  }

  /** Returns the new revision; throws 409 unless the parent is a leaf. */
  edit(
    document: IncomingDocument,
    rev: Revision | undefined = document.rev,
  ): string {
    const parent = this.#parentOf(rev, document.deleted);
    const [generation, parentText] =
      parent === undefined ? [0, ""] : [parent.pos, revisionText(parent)];
    const hash = newHash(document.deleted, parentText, document.body);
    const ids = parent === undefined ? [hash] : [hash, parent.hash];
    if (!this.#add({ start: generation + 1, ids }, document)) {
      // The same edit of the same parent already exists and was edited or deleted since.
      throw conflict();
    }
    return `${generation + 1}-${hash}`;
  }

  /** Returns the revision; a known one is unchanged. */
  replicate(document: IncomingDocument): string {
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
    this.#add(path, document);
    return `${path.start}-${path.ids[0]!}`;
  }

  /** Writes the document's row and counts. */
  finish(): void {
    if (!this.#changed) {
      return;
    }
    const { totals, settings, committedSeq, write } = this.#store;
    const { tree, stemmed } = this.#tree.prune(settings.revsLimit);
    const state = stateOf(tree);
    const conflicts = state.leaves.filter(
      (leaf) => !leaf.deleted && leaf.rev !== state.winner,
    ).length;
    // Several revisions of one document in a request are one change.
    const again = this.#row !== undefined && this.#row.seq > committedSeq;
    if (!again || this.#row.seq !== totals.updateSeq) {
      totals.updateSeq += 1;
    }
    const columns = [
      totals.updateSeq,
      state.winner,
      state.deleted ? 1 : 0,
      conflicts,
      JSON.stringify(tree),
    ] as const;
    if (this.#row === undefined) {
      write.insertDocument.run(this.#number, this.#id, ...columns);
    } else {
      write.updateDocument.run(this.#number, ...columns);
    }
    countDocument(totals, this.#row, state.deleted);
    const leaves = new Set(state.leaves.map((leaf) => leaf.rev));
    for (const rev of this.#candidates) {
      if (!leaves.has(rev)) {
        retire(this.#store, this.#number, rev);
      }
    }
    for (const old of stemmed) {
      drop(this.#store, this.#number, old);
    }
  }

  #parentOf(rev: Revision | undefined, deletes: boolean): Revision | undefined {
    if (rev !== undefined) {
      if (!this.#tree.isLiveLeaf(revisionText(rev))) {
        throw conflict();
      }
      return rev;
    }
    if (this.#row === undefined && !this.#changed) {
      return undefined;
    }
    // A deleted document may be recreated; the new revision follows the deletion.
    const deleted = this.#tree.deletedWinner();
    if (deleted === undefined || deletes) {
      throw conflict();
    }
    return parseRevision(deleted);
  }

  /**
   * Stores a path and the body of its newest revision. False when that revision already exists undamaged and its history adds
   * nothing.
   */
  #add(path: RevisionPath, document: IncomingDocument): boolean {
    const rev = `${path.start}-${path.ids[0]!}`;
    const known = this.#tree.has(rev);
    const isReplaced =
      known &&
      replaceDamaged(this.#store, this.#number, rev, {
        document,
        isLeaf: this.#tree.isLeaf(rev),
      });
    if (!this.#tree.add(path, document.deleted) && !isReplaced) {
      return false;
    }
    this.#changed = true;
    if (!known) {
      writeRevision(this.#store, this.#number, rev, document);
      this.#candidates.push(rev);
    }
    return true;
  }
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

/** Prepared with the first write: a file that a full disk left without checksums has no such column. */
const INSERT_REVISION =
  "INSERT INTO revisions (document, rev, leaf, deleted, type, size, body, sum) VALUES (?, ?, 1, ?, ?, ?, ?, ?)";

function writeRevision(
  store: Store,
  number: number,
  rev: string,
  { deleted, type, body }: IncomingDocument,
): void {
  const size = body.length;
  store.write
    .other(INSERT_REVISION)
    .run(number, rev, deleted ? 1 : 0, type ?? null, size, body, sumOf(body));
  store.totals.liveBytes += size;
  recordStart(store, number, rev, { deleted, type, size });
}

/** Replaces a body that is damaged, or that a leaf has lost, by the one that a device sent again. False: it is undamaged. */
function replaceDamaged(
  store: Store,
  number: number,
  rev: string,
  {
    document,
    isLeaf,
  }: { readonly document: IncomingDocument; readonly isLeaf: boolean },
): boolean {
  const { type, body } = document;
  const row = store.write
    .other(
      "SELECT leaf, size, body, sum FROM revisions WHERE document = ? AND rev = ?",
    )
    .get(number, rev) as
    (SummedBody & { readonly leaf: number; readonly size: number }) | undefined;
  if (row === undefined ? !isLeaf : !isDamaged(row)) {
    return false;
  }
  store.damaged.delete(`${number} ${rev}`);
  if (row === undefined) {
    writeRevision(store, number, rev, document);
    return true;
  }
  store.write
    .other(
      "UPDATE revisions SET type = ?3, size = ?4, body = ?5, sum = ?6 WHERE document = ?1 AND rev = ?2",
    )
    .run(number, rev, type ?? null, body.length, body, sumOf(body));
  store.totals[row.leaf === 1 ? "liveBytes" : "staleBytes"] +=
    body.length - row.size;
  return true;
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
