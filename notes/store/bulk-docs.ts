import { Refusal } from "../refusal.ts";
import { json, type Answer } from "./answer.ts";
import { inBodyTurn } from "./body-turn.ts";
import { readBulkBody } from "./bulk-body.ts";
import type { BulkEntry } from "./body-window.ts";
import { DocumentChange } from "./change-document.ts";
import { checkId, newId, refuseDesign } from "./document-ids.ts";
import { writeLocal } from "./local-documents.ts";
import type { StoreRequest } from "./protocol.ts";
import { breather, inTransaction, type Store } from "./store.ts";
import { storable } from "./users.ts";

interface Placed {
  readonly id: string;
  readonly entry: BulkEntry;
  readonly index: number;
}

type Outcome =
  | { readonly ok: true; readonly id: string; readonly rev: string }
  | { readonly id: string; readonly error: string; readonly reason: string };

/** Writes many documents in one transaction. One invalid or too large document rejects the whole request; a conflict rejects only its document. */
export async function bulkDocs(
  store: Store,
  request: StoreRequest,
): Promise<Answer> {
  return await inBodyTurn(request, () => writeAll(store, request));
}

async function writeAll(store: Store, request: StoreRequest): Promise<Answer> {
  const breathe = breather();
  const body = await readBulkBody(
    request.body,
    request.maxDocumentSize,
    breathe,
  );
  try {
    const placed = place(body.entries, request.maxDocumentSize);
    const outcomes: (Outcome | undefined)[] = [];
    if (placed.length > 0) {
      await inTransaction(store, async () => {
        let open: { id: string; change: DocumentChange } | undefined;
        // Revisions of one document follow each other.
        const changeOf = (id: string): DocumentChange => {
          if (open?.id !== id) {
            open?.change.finish();
            open = { id, change: new DocumentChange(store, id) };
          }
          return open.change;
        };
        for (const item of placed) {
          outcomes[item.index] = writeOne(
            store,
            request,
            item,
            body.newEdits,
            changeOf,
          );
          await breathe();
        }
        open?.change.finish();
      });
    }
    // With new_edits false only rejected documents are reported.
    const reported = body.newEdits
      ? outcomes
      : outcomes.filter(
          (outcome) => outcome !== undefined && "error" in outcome,
        );
    return json(201, reported);
  } finally {
    body.close();
  }
}

/** The documents by id, the order in which CouchDB assigns sequences. */
function place(
  entries: readonly BulkEntry[],
  maxDocumentSize: number,
): Placed[] {
  const placed = entries.map((entry, index) => {
    const id = entry.id ?? newId();
    checkId(id);
    if (entry.size > maxDocumentSize) {
      throw new Refusal("document_too_large", id);
    }
    return { id, entry, index, key: Buffer.from(id) };
  });
  return placed.sort(
    (a, b) => Buffer.compare(a.key, b.key) || a.index - b.index,
  );
}

function writeOne(
  store: Store,
  request: StoreRequest,
  { id, entry }: Placed,
  newEdits: boolean,
  changeOf: (id: string) => DocumentChange,
): Outcome {
  try {
    refuseDesign(id, request.admin === true);
    const document = entry.read();
    if (id.startsWith("_local/")) {
      return { ok: true, id, rev: writeLocal(store, id, document) };
    }
    const stored = storable(store, id, document);
    const change = changeOf(id);
    const rev = newEdits ? change.edit(stored) : change.replicate(stored);
    return { ok: true, id, rev };
  } catch (failure) {
    if (!(failure instanceof Refusal) || failure.code === "bad_request") {
      throw failure;
    }
    return { id, error: failure.code, reason: failure.message };
  }
}
