import { Refusal } from "../refusal.ts";
import type { Answer } from "./answer.ts";
import type { StoreRequest } from "./protocol.ts";
import { bodyObject } from "./query.ts";
import {
  knownRevisions,
  parseRevision,
  revisionText,
  stateOf,
} from "./revisions.ts";
import { breather, treeOf, type DocumentRow, type Store } from "./store.ts";

interface Missing {
  readonly missing: readonly string[];
  readonly possible_ancestors?: readonly string[];
}

/** The given revisions that this database lacks, and leaves that may be their ancestors. Yields to other requests: a body may name 100,000 documents. */
export async function revsDiff(
  store: Store,
  request: StoreRequest,
): Promise<Answer> {
  const breathe = breather();
  const found: string[] = [];
  for (const [id, revs] of Object.entries(bodyObject(request.body))) {
    const missing = missingOf(store, id, revs);
    if (missing !== undefined) {
      found.push(`${JSON.stringify(id)}:${JSON.stringify(missing)}`);
    }
    await breathe();
  }
  return { status: 200, body: `{${found.join(",")}}\n` };
}

function missingOf(
  store: Store,
  id: string,
  revs: unknown,
): Missing | undefined {
  if (!Array.isArray(revs)) {
    throw new Refusal(
      "bad_request",
      `The revisions of ${JSON.stringify(id)} must be a list.`,
    );
  }
  const offered = revs.map(parseRevision);
  const row = store.read.document.get(id) as unknown as DocumentRow | undefined;
  const known =
    row === undefined ? new Set<string>() : knownRevisions(treeOf(row));
  // Devices that have a damaged revision send it again.
  const isHeld = (rev: string): boolean =>
    known.has(rev) && !store.damaged.has(`${row?.number} ${rev}`);
  const missing = offered.filter((rev) => !isHeld(revisionText(rev)));
  if (missing.length === 0) {
    return undefined;
  }
  const newest = missing.reduce((most, { pos }) => Math.max(most, pos), 0);
  const ancestors =
    row === undefined
      ? []
      : stateOf(treeOf(row))
          .leaves.map((leaf) => leaf.rev)
          .filter((rev) => parseRevision(rev).pos < newest);
  return {
    missing: missing.map(revisionText),
    ...(ancestors.length > 0 ? { possible_ancestors: ancestors } : {}),
  };
}
