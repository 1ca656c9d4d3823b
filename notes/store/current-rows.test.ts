import { expect, test, vi } from "vitest";
import { bodyOf, temporaryStore } from "../../test/contract/temporary-store.ts";
import { allDocs } from "./all-docs.ts";
import { piecesText } from "./assemble.ts";
import { changes } from "./changes.ts";
import { compact } from "./compaction.ts";
import { find } from "./find.ts";

const vault = temporaryStore();

const request = (body: object, query: Readonly<Record<string, string>> = {}) =>
  ({
    operation: "find",
    query,
    body: bodyOf(body),
    maxDocumentSize: 1000,
  }) as const;

test.for([
  ["_find", () => find(vault.store, request({ selector: {} }))],
  ["_all_docs", () => allDocs(vault.store, request({ include_docs: true }))],
  [
    "_changes",
    () => changes(vault.store, request({}, { include_docs: "true" })),
  ],
  [
    "_changes with a selector",
    () =>
      changes(
        vault.store,
        request(
          { selector: { text: { $exists: true } } },
          { include_docs: "true", filter: "_selector" },
        ),
      ),
  ],
] as const)(
  "a note changed and compacted while %s is read slowly is in the answer",
  async ([, ask]) => {
    await vault.write({ _id: "a", _rev: "1-a", text: "first" });
    await vault.write({ _id: "b", _rev: "1-a", text: "old" });
    await vault.write({ _id: "c", _rev: "1-a", text: "short-lived" });
    const answer = ask();
    const pieces = [];
    if ("pieces" in answer) {
      // The first note has been sent, and both rows were read with it.
      do {
        pieces.push(answer.pieces.next().value as string);
      } while (!piecesText(pieces).includes("first"));
      const _revisions = { start: 2, ids: ["b", "a"] };
      await vault.write({ _id: "b", _revisions, text: "new" });
      await vault.write({ _id: "c", _revisions, _deleted: true });
      compact(vault.store);
      await vi.waitUntil(() => !vault.store.compacting);
      pieces.push(...answer.pieces);
    }
    const text = piecesText(pieces);
    expect(text).toContain('"text":"new"');
    expect(text).not.toContain('"doc":null');
  },
);

test.for([
  ["_find", () => find(vault.store, request({ selector: { text: "none" } }))],
  [
    "_find by type",
    () => find(vault.store, request({ selector: { type: "none" } })),
  ],
  ["_all_docs", () => allDocs(vault.store, request({}, { skip: "3" }))],
  [
    "_changes",
    () =>
      changes(
        vault.store,
        request({ selector: { text: "none" } }, { filter: "_selector" }),
      ),
  ],
] as const)(
  "other requests get a turn after each document that %s leaves out",
  async ([, ask]) => {
    for (const _id of ["a", "b", "c"]) {
      await vault.write({ _id, _rev: "1-a", type: "plain", text: "some" });
    }
    const answer = ask();
    const pieces = "pieces" in answer ? [...answer.pieces] : [];
    expect(pieces.filter((piece) => piece.length === 0)).toHaveLength(3);
  },
);
