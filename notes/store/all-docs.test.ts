import { expect, test } from "vitest";
import { temporaryStore, textOf } from "../../test/contract/temporary-store.ts";
import { allDocs } from "./all-docs.ts";
import type { Answer } from "./answer.ts";
import { readDocument } from "./incoming.ts";
import { localDocs, writeLocal } from "./local-documents.ts";
import type { OperationName, StoreRequest } from "./protocol.ts";
import { inTransaction } from "./store.ts";

const vault = temporaryStore();

const request = (
  operation: OperationName,
  query: StoreRequest["query"],
): StoreRequest => ({
  operation,
  query,
  admin: false,
  maxDocumentSize: 1000,
});

const rowsOf = (answer: Answer): readonly unknown[] =>
  (JSON.parse(textOf(answer)) as { rows: unknown[] }).rows;

test("numbers of rows have no upper limit", async () => {
  await vault.write({ _id: "a", _rev: "1-a" });
  await inTransaction(vault.store, () =>
    writeLocal(vault.store, "_local/a", readDocument(Buffer.from("{}"))),
  );
  const most = "9".repeat(30);
  for (const [query, found] of [
    [{ limit: most }, 1],
    [{ skip: most }, 0],
    [{ limit: most, skip: most }, 0],
  ] as const) {
    const { store } = vault;
    expect(rowsOf(allDocs(store, request("allDocs", query)))).toHaveLength(
      found,
    );
    expect(rowsOf(localDocs(store, request("localDocs", query)))).toHaveLength(
      found,
    );
  }
});

test("local documents are listed in pieces, between which other requests run", async () => {
  const { store } = vault;
  await inTransaction(store, () =>
    writeLocal(store, "_local/a", readDocument(Buffer.from('{"n":1}'))),
  );
  const keys = JSON.stringify(["_local/a", "_local/b", 1]);
  const query = { keys, include_docs: "true" };
  const answer = localDocs(store, request("localDocs", query));
  expect(rowsOf(answer)).toEqual([
    {
      id: "_local/a",
      key: "_local/a",
      value: { rev: "0-1" },
      doc: { _id: "_local/a", _rev: "0-1", n: 1 },
    },
    { key: "_local/b", error: "not_found" },
    { key: 1, error: "not_found" },
  ]);
  expect("pieces" in answer).toBe(true);
});

test("a page is full although one of its documents is deleted while it is read", async () => {
  for (const _id of ["a", "b", "c", "d"]) {
    await vault.write({ _id, _rev: "1-a" });
  }
  const answer = allDocs(vault.store, request("allDocs", { limit: "3" }));
  if (!("pieces" in answer)) {
    throw new Error("the answer is not streamed");
  }
  let text = "";
  for (const piece of answer.pieces) {
    text += String(piece);
    if (text.endsWith('{"rev":"1-a"}}')) {
      await vault.write({
        _id: "b",
        _revisions: { start: 2, ids: ["b", "a"] },
        _deleted: true,
      });
    }
  }
  const { rows } = JSON.parse(text) as { rows: { id: string }[] };
  expect(rows.map(({ id }) => id)).toEqual(["a", "c", "d"]);
});

test("no document has a key that is not a string", async () => {
  await vault.write({ _id: "a", _rev: "1-a" });
  for (const [key, found] of [
    ['"a"', 1],
    ["null", 0],
    ["1", 0],
    ["{}", 0],
  ] as const) {
    const answer = allDocs(vault.store, request("allDocs", { key }));
    expect(rowsOf(answer)).toHaveLength(found);
  }
});
