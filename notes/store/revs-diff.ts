import { Refusal } from "../refusal.ts";
import { json, type Answer } from "./answer.ts";
import type { StoreRequest } from "./protocol.ts";
import { bodyObject } from "./query.ts";
import {
  knownRevisions,
  parseRevision,
  revisionText,
  stateOf,
} from "./revisions.ts";
import { treeOf, type DocumentRow, type Store } from "./store.ts";

interface Missing {
  readonly missing: readonly string[];
  readonly possible_ancestors?: readonly string[];
}

/** The given revisions that this database lacks, and leaves that may be their ancestors. */
export function revsDiff(store: Store, request: StoreRequest): Answer {
  return json(200, Object.fromEntries(difference(store, request)));
}

function difference(store: Store, request: StoreRequest): [string, Missing][] {
  const found: [string, Missing][] = [];
  for (const [id, revs] of Object.entries(bodyObject(request.body))) {
    if (!Array.isArray(revs)) {
      throw new Refusal(
        "bad_request",
        `The revisions of ${JSON.stringify(id)} must be a list.`,
      );
    }
    const offered = revs.map(parseRevision);
    const row = store.read.document.get(id) as unknown as
      DocumentRow | undefined;
    const known =
      row === undefined ? new Set<string>() : knownRevisions(treeOf(row));
    const missing = offered.filter((rev) => !known.has(revisionText(rev)));
    if (missing.length === 0) {
      continue;
    }
    const newest = Math.max(...missing.map((rev) => rev.pos));
    const ancestors =
      row === undefined
        ? []
        : stateOf(treeOf(row))
            .leaves.map((leaf) => leaf.rev)
            .filter((rev) => parseRevision(rev).pos < newest);
    found.push([
      id,
      {
        missing: missing.map(revisionText),
        ...(ancestors.length > 0 ? { possible_ancestors: ancestors } : {}),
      },
    ]);
  }
  return found;
}
