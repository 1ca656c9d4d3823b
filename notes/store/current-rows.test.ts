import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { allDocs } from "./all-docs.ts";
import type { Answer } from "./answer.ts";
import { piecesText } from "./assemble.ts";
import { edit } from "./change-document.ts";
import { changes } from "./changes.ts";
import { compact } from "./compaction.ts";
import { find } from "./find.ts";
import { readDocument } from "./incoming.ts";
import { parseRevision } from "./revisions.ts";
import { disconnect, inTransaction, openStore, type Store } from "./store.ts";

let directory: string;
let store: Store;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-current-"));
  store = openStore(
    {
      name: "vault",
      file: join(directory, "vault.sqlite"),
      kind: "vault",
      instanceStartTime: "1",
      passwordIterations: 1,
    },
    () => undefined,
  );
});

afterEach(() => {
  disconnect(store);
  rmSync(directory, { recursive: true });
});

const write = async (
  id: string,
  document: object,
  rev?: string,
): Promise<string> => {
  const incoming = readDocument(Buffer.from(JSON.stringify(document)));
  return await inTransaction(store, () =>
    edit(
      store,
      id,
      incoming,
      rev === undefined ? undefined : parseRevision(rev),
    ),
  );
};

const request = (body: object, query: Readonly<Record<string, string>> = {}) =>
  ({
    operation: "find",
    query,
    body: { kind: "memory", bytes: Buffer.from(JSON.stringify(body)) },
    maxDocumentSize: 1000,
  }) as const;

test.for([
  ["_find", () => find(store, request({ selector: {} }))],
  ["_all_docs", () => allDocs(store, request({ include_docs: true }))],
  ["_changes", () => changes(store, request({}, { include_docs: "true" }))],
  [
    "_changes with a selector",
    () =>
      changes(
        store,
        request(
          { selector: { text: { $exists: true } } },
          { include_docs: "true", filter: "_selector" },
        ),
      ),
  ],
] as const)(
  "a note changed and compacted while %s is read slowly is in the answer",
  async ([, ask]) => {
    await write("a", { text: "first" });
    const rev = await write("b", { text: "old" });
    const gone = await write("c", { text: "short-lived" });
    const answer: Answer = ask();
    const pieces = [];
    if ("pieces" in answer) {
      // The first note has been sent, and both rows were read with it.
      do {
        pieces.push(answer.pieces.next().value as string);
      } while (!piecesText(pieces).includes("first"));
      await write("b", { text: "new" }, rev);
      await write("c", { _deleted: true }, gone);
      compact(store);
      await vi.waitUntil(() => !store.compacting);
      pieces.push(...answer.pieces);
    }
    const text = piecesText(pieces);
    expect(text).toContain('"text":"new"');
    expect(text).not.toContain('"doc":null');
  },
);
