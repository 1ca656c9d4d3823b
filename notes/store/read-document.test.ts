import { expect, test } from "vitest";
import { temporaryStore } from "../../test/contract/temporary-store.ts";
import { getDocument } from "./read-document.ts";

const vault = temporaryStore();

test.for([
  ['"2-b"', 304],
  ['"1-a", "2-b"', 304],
  ['"2-b","1-a"', 304],
  ['"1-a", "3-c"', 200],
  ["2-b", 200],
] as const)("If-None-Match: %s gets %i", async ([ifNoneMatch, status]) => {
  await vault.write({ _id: "note", _rev: "2-b" });
  const answer = getDocument(vault.store, {
    operation: "getDocument",
    id: "note",
    query: {},
    ifNoneMatch,
    maxDocumentSize: 1000,
  });
  expect(answer.status).toBe(status);
});
