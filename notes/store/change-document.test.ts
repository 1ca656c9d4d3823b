import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { replicate } from "./change-document.ts";
import { readDocument } from "./incoming.ts";
import { getDocument } from "./read-document.ts";
import { piecesText } from "./assemble.ts";
import { disconnect, inTransaction, openStore, type Store } from "./store.ts";

let directory: string;
let store: Store;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-changes-"));
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

const write = async (start: number, ids: readonly string[]): Promise<void> => {
  const incoming = readDocument(
    Buffer.from(JSON.stringify({ _revisions: { start, ids }, text: ids[0] })),
  );
  await inTransaction(store, () => replicate(store, "note", incoming));
};

const note = (): unknown => {
  const answer = getDocument(store, {
    operation: "getDocument",
    id: "note",
    query: { conflicts: "true", revs: "true" },
    maxDocumentSize: 1000,
  });
  return JSON.parse("pieces" in answer ? piecesText([...answer.pieces]) : "");
};

test("a longer history of a stored revision ends a conflict with its ancestor", async () => {
  await write(2, ["b", "a"]);
  await write(3, ["c"]);
  expect(note()).toMatchObject({ _rev: "3-c", _conflicts: ["2-b"] });
  await write(3, ["c", "b", "a"]);
  expect(note()).toEqual({
    _id: "note",
    _rev: "3-c",
    text: "c",
    _revisions: { start: 3, ids: ["c", "b", "a"] },
  });
  expect(store.totals).toMatchObject({ updateSeq: 3, documents: 1 });
  expect(store.totals.liveBytes).toBe('"text":"c"'.length);
});

test("a stored revision that arrives again changes nothing", async () => {
  await write(3, ["c", "b", "a"]);
  await write(3, ["d", "b", "a"]);
  const before = { ...store.totals };
  for (const ids of [["c"], ["c", "b"], ["c", "b", "a"], ["d", "b", "a"]]) {
    await write(3, ids);
  }
  await write(2, ["b", "a"]);
  expect(store.totals).toEqual(before);
});
