import type { Selector } from "./selector.ts";
import type { DocumentRow, Store } from "./store.ts";

/** Members that are known without the body of a revision. */
const KNOWN_MEMBERS: ReadonlySet<string> = new Set([
  "type",
  "_id",
  "_rev",
  "_deleted",
]);

/**
 * Checks those conditions of a selector that need no body: false if one of them fails, true if they all hold and there are no
 * others, undefined if the body decides. Most documents of a vault are chunks, and LiveSync selects by type.
 */
export function openPrecheck(
  store: Store,
  selector: Selector,
): (row: DocumentRow, rev: string) => boolean | undefined {
  const known = selector.only(KNOWN_MEMBERS);
  if (known === undefined) {
    return () => undefined;
  }
  return (row, rev) => {
    const head = headOf(store, row, rev);
    if (head === undefined) {
      return undefined;
    }
    if (!known.matches(head)) {
      return false;
    }
    return known.isWhole ? true : undefined;
  };
}

/** Undefined where the type is not a string, so that only the body shows it. */
function headOf(
  store: Store,
  row: DocumentRow,
  rev: string,
): Record<string, unknown> | undefined {
  const about = store.read.revision.get(row.number, rev);
  if (about === undefined || about.type === null) {
    return undefined;
  }
  return {
    _id: row.id,
    _rev: rev,
    type: about.type,
    ...(about.deleted === 1 ? { _deleted: true } : {}),
  };
}
