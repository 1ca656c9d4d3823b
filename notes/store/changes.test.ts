import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { piecesText } from "./assemble.ts";
import { replicate } from "./change-document.ts";
import { changes } from "./changes.ts";
import { readDocument } from "./incoming.ts";
import type { ChangesEnd } from "./protocol.ts";
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

const write = async (document: object): Promise<void> => {
  const incoming = readDocument(Buffer.from(JSON.stringify(document)));
  await inTransaction(store, () => replicate(store, incoming.id!, incoming));
};

/** The ids of the changes that a selector passes, with the revisions listed. */
function selected(
  selector: object,
  query: Readonly<Record<string, string>> = {},
): Record<string, readonly string[]> {
  const answer = changes(store, {
    operation: "changes",
    query: { ...query, filter: "_selector" },
    body: { kind: "memory", bytes: Buffer.from(JSON.stringify({ selector })) },
    feed: { lines: true, first: true },
    maxDocumentSize: 1_000_000,
  });
  const text = "pieces" in answer ? piecesText([...answer.pieces]) : "";
  const rows = text
    .split("\n")
    .filter((line) => line !== "")
    .map(
      (line) => JSON.parse(line) as { id: string; changes: { rev: string }[] },
    );
  return Object.fromEntries(
    rows.map(({ id, changes: listed }) => [id, listed.map(({ rev }) => rev)]),
  );
}

const noChunks = { type: { $ne: "leaf" } };

test("with all leaves, a selector examines each leaf and lists those that match", async () => {
  // Two devices deleted the note: one kept its content, the later one did not.
  await write({ _id: "note", _rev: "1-a", type: "plain" });
  await write({
    _id: "note",
    _revisions: { start: 2, ids: ["b", "a"] },
    _deleted: true,
    type: "plain",
  });
  await write({
    _id: "note",
    _revisions: { start: 3, ids: ["d", "c", "a"] },
    _deleted: true,
  });
  expect(selected(noChunks, { style: "all_docs" })).toEqual({
    note: ["2-b"],
  });
  expect(selected({ _deleted: true }, { style: "all_docs" })).toEqual({
    note: ["3-d", "2-b"],
  });
  expect(selected(noChunks)).toEqual({});
});

test("a selector on a member of the body examines each leaf, too", async () => {
  await write({ _id: "note", _rev: "1-a", side: "left" });
  await write({ _id: "note", _rev: "1-b", side: "right" });
  expect(selected({ side: "left" }, { style: "all_docs" })).toEqual({
    note: ["1-a"],
  });
  expect(selected({ side: "left" })).toEqual({});
  expect(selected({ side: "right" })).toEqual({ note: ["1-b"] });
});

test("a selector finds conflicts of the winner", async () => {
  await write({ _id: "calm", _rev: "1-a" });
  await write({ _id: "torn", _rev: "1-a" });
  await write({ _id: "torn", _rev: "1-b" });
  expect(selected({ _conflicts: { $exists: true } })).toEqual({
    torn: ["1-b"],
  });
});

test("a note written while the feed is read does not leave it", async () => {
  for (let index = 0; index < 300; index += 1) {
    await write({ _id: `note-${index}`, _rev: "1-a" });
  }
  const answer = changes(store, {
    operation: "changes",
    query: {},
    maxDocumentSize: 1000,
  });
  if (!("pieces" in answer)) {
    throw new Error("the answer has no pieces");
  }
  const pieces = [answer.pieces.next().value as string];
  // It is later in the feed than all pages read so far, and moves to its end.
  await write({
    _id: "note-299",
    _revisions: { start: 2, ids: ["b", "a"] },
  });
  let end: ChangesEnd | undefined;
  for (;;) {
    const { done, value } = answer.pieces.next();
    if (done === true) {
      end = value as ChangesEnd;
      break;
    }
    pieces.push(value as string);
  }
  expect(piecesText(pieces)).toContain(
    '"id":"note-299","changes":[{"rev":"2-b"}]',
  );
  expect(end).toMatchObject({ rows: 300, pending: 0, seen: 301 });
  expect(end.token).toMatch(/^301-/);
});
