import { expect, test } from "vitest";
import { temporaryStore, textOf } from "../../test/contract/temporary-store.ts";
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
