import type { DocumentRow, Store } from "./store.ts";

/**
 * The rows of a page, each as it is when it is reached, at its place in the page: a client may take minutes to read them, while
 * a compaction removes bodies that were superseded meanwhile. Removed documents are left out.
 */
export function* currentRows(
  store: Store,
  page: readonly DocumentRow[],
): Generator<DocumentRow> {
  const readAt = store.committedSeq;
  for (const row of page) {
    if (store.committedSeq === readAt) {
      yield row;
      continue;
    }
    const now = store.read.document.get(row.id) as unknown as
      DocumentRow | undefined;
    if (now !== undefined) {
      yield { ...now, seq: row.seq };
    }
  }
}

/** The rows of a page whose documents are not deleted by the time they are reached. */
export function* liveRows(
  store: Store,
  page: readonly DocumentRow[],
): Generator<DocumentRow> {
  for (const row of currentRows(store, page)) {
    if (row.deleted === 0) {
      yield row;
    }
  }
}
