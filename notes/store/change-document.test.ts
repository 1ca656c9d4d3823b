import { expect, test } from "vitest";
import {
  bodyOf,
  temporaryStore,
  textOf,
} from "../../test/contract/temporary-store.ts";
import { bulkDocs } from "./bulk-docs.ts";
import { getDocument } from "./read-document.ts";

const vault = temporaryStore();

const write = async (start: number, ids: readonly string[]): Promise<void> =>
  await vault.write({
    _id: "note",
    _revisions: { start, ids },
    text: ids[0],
  });

const note = (): unknown =>
  JSON.parse(
    textOf(
      getDocument(vault.store, {
        operation: "getDocument",
        id: "note",
        query: { conflicts: "true", revs: "true" },
        maxDocumentSize: 1000,
      }),
    ),
  );

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
  const { totals } = vault.store;
  expect(totals).toMatchObject({ updateSeq: 3, documents: 1 });
  expect(totals.liveBytes).toBe('"text":"c"'.length);
});

test("a history beyond the limit of revisions ends a conflict with its ancestor, too", async () => {
  vault.store.settings = { ...vault.store.settings, revsLimit: 2 };
  await write(4, ["d", "c", "b", "a"]);
  await write(2, ["b", "a"]);
  expect(note()).toMatchObject({ _rev: "4-d", _conflicts: ["2-b"] });
  await write(4, ["d", "c", "b", "a"]);
  expect(note()).not.toHaveProperty("_conflicts");
});

test("a stored revision that arrives again changes nothing", async () => {
  await write(3, ["c", "b", "a"]);
  await write(3, ["d", "b", "a"]);
  const before = { ...vault.store.totals };
  for (const ids of [["c"], ["c", "b"], ["c", "b", "a"], ["d", "b", "a"]]) {
    await write(3, ids);
  }
  await write(2, ["b", "a"]);
  expect(vault.store.totals).toEqual(before);
});

const bulk = async (
  docs: readonly unknown[],
  newEdits = false,
): Promise<unknown> =>
  JSON.parse(
    textOf(
      await bulkDocs(vault.store, {
        operation: "bulkDocs",
        query: {},
        body: bodyOf({ docs, new_edits: newEdits }),
        maxDocumentSize: 1000,
      }),
    ),
  );

test("revisions of one document in a request have the effect of separate ones", async () => {
  await bulk([
    { _id: "note", _revisions: { start: 1, ids: ["a"] }, text: "a" },
    { _id: "note", _revisions: { start: 3, ids: ["c", "b", "a"] }, text: "c" },
    { _id: "note", _revisions: { start: 2, ids: ["x", "a"] }, text: "x" },
    { _id: "note", _revisions: { start: 2, ids: ["b", "a"] }, text: "b" },
    { _id: "note", _rev: "not-a-revision", text: "rejected" },
    { _id: "other", _revisions: { start: 1, ids: ["a"] }, text: "a" },
  ]).catch(() => undefined);
  expect(vault.store.totals).toMatchObject({ documents: 0, updateSeq: 0 });
  await bulk([
    { _id: "note", _revisions: { start: 1, ids: ["a"] }, text: "a" },
    { _id: "note", _revisions: { start: 3, ids: ["c", "b", "a"] }, text: "c" },
    { _id: "note", _revisions: { start: 2, ids: ["x", "a"] }, text: "x" },
    { _id: "note", _revisions: { start: 2, ids: ["b", "a"] }, text: "b" },
    { _id: "other", _revisions: { start: 1, ids: ["a"] }, text: "a" },
  ]);
  expect(note()).toMatchObject({
    _rev: "3-c",
    text: "c",
    _conflicts: ["2-x"],
    _revisions: { start: 3, ids: ["c", "b", "a"] },
  });
  expect(vault.store.totals).toMatchObject({
    documents: 2,
    updateSeq: 2,
    liveBytes: 3 * '"text":"c"'.length,
    staleBytes: '"text":"a"'.length,
  });
});

test("edits of one document in a request: the first one counts, the others are conflicts", async () => {
  const outcomes = await bulk(
    [
      { _id: "note", text: "one" },
      { _id: "note", text: "two" },
    ],
    true,
  );
  expect(outcomes).toMatchObject([{ ok: true }, { error: "conflict" }]);
  expect(note()).toMatchObject({ text: "one" });
});

test("a document takes as many revisions in a request as there are documents in one", async () => {
  const COUNT = 30_000;
  const docs = Array.from({ length: COUNT }, (_each, at) => ({
    _id: "note",
    _rev: `1-${String(at).padStart(32, "0")}`,
  }));
  await bulk(docs);
  const { _conflicts: conflicts } = note() as { _conflicts: string[] };
  expect(conflicts).toHaveLength(COUNT - 1);
});
