import { expect, test } from "vitest";
import { temporaryStore } from "../../test/contract/temporary-store.ts";
import { piecesText } from "./assemble.ts";
import { getDocument } from "./read-document.ts";

const temporary = temporaryStore();

test("each leaf comes with its history, and without a list of the others", async () => {
  for (const hash of ["a", "b", "c"]) {
    await temporary.write({ _id: "note", _rev: `1-${hash}`, data: hash });
  }
  const answer = getDocument(temporary.store, {
    operation: "getDocument",
    id: "note",
    query: { open_revs: "all", revs: "true", conflicts: "true" },
    maxDocumentSize: 1,
  });
  const pieces = "pieces" in answer ? answer.pieces : [];
  expect(JSON.parse(piecesText([...pieces]))).toEqual(
    ["a", "b", "c"].map((hash) => ({
      ok: {
        _id: "note",
        _rev: `1-${hash}`,
        data: hash,
        _revisions: { start: 1, ids: [hash] },
      },
    })),
  );
});
