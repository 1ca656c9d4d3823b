import { expect, test } from "vitest";
import {
  bodyOf,
  temporaryStore,
  textOf,
} from "../../test/contract/temporary-store.ts";
import { piecesText } from "./assemble.ts";
import { changes } from "./changes.ts";
import type { ChangesEnd } from "./protocol.ts";
import { sequenceToken } from "./sequence.ts";

const vault = temporaryStore();

/** The ids of the changes that a selector passes, with the revisions listed. */
function selected(
  selector: object,
  query: Readonly<Record<string, string>> = {},
): Record<string, readonly string[]> {
  const answer = changes(vault.store, {
    operation: "changes",
    query: { ...query, filter: "_selector" },
    body: bodyOf({ selector }),
    feed: { lines: true },
    maxDocumentSize: 1000,
  });
  const rows = textOf(answer)
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
  await vault.write({ _id: "note", _rev: "1-a", type: "plain" });
  await vault.write({
    _id: "note",
    _revisions: { start: 2, ids: ["b", "a"] },
    _deleted: true,
    type: "plain",
  });
  await vault.write({
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
  await vault.write({ _id: "note", _rev: "1-a", side: "left" });
  await vault.write({ _id: "note", _rev: "1-b", side: "right" });
  expect(selected({ side: "left" }, { style: "all_docs" })).toEqual({
    note: ["1-a"],
  });
  expect(selected({ side: "left" })).toEqual({});
  expect(selected({ side: "right" })).toEqual({ note: ["1-b"] });
});

test("a selector finds conflicts of the winner", async () => {
  await vault.write({ _id: "calm", _rev: "1-a" });
  await vault.write({ _id: "torn", _rev: "1-a" });
  await vault.write({ _id: "torn", _rev: "1-b" });
  expect(selected({ _conflicts: { $exists: true } })).toEqual({
    torn: ["1-b"],
  });
});

/** Reads a feed of 300 notes, and runs `meanwhile` after its first piece. */
async function readMeanwhile(
  query: Readonly<Record<string, string>>,
  meanwhile: () => Promise<void>,
): Promise<{ readonly text: string; readonly end: ChangesEnd }> {
  for (let index = 0; index < 300; index += 1) {
    await vault.write({ _id: `note-${index}`, _rev: "1-a" });
  }
  const answer = changes(vault.store, {
    operation: "changes",
    query,
    maxDocumentSize: 1000,
  });
  if (!("pieces" in answer)) {
    throw new Error("the answer has no pieces");
  }
  const pieces = [answer.pieces.next().value as string];
  await meanwhile();
  for (;;) {
    const { done, value } = answer.pieces.next();
    if (done === true) {
      return { text: piecesText(pieces), end: value as ChangesEnd };
    }
    pieces.push(value as string);
  }
}

test("a note written while the feed is read does not leave it", async () => {
  // It is later in the feed than all pages read so far, and moves to its end.
  const { text, end } = await readMeanwhile({}, () =>
    vault.write({ _id: "note-299", _revisions: { start: 2, ids: ["b", "a"] } }),
  );
  expect(text).toContain('"id":"note-299","changes":[{"rev":"2-b"}]');
  expect(end).toMatchObject({ rows: 300, pending: 0, seen: 301 });
  expect(end.token).toMatch(/^301-/);
});

test("a descending feed ends at what it began with", async () => {
  const { text, end } = await readMeanwhile({ descending: "true" }, () =>
    vault.write({ _id: "later", _rev: "1-a" }),
  );
  expect(text).not.toContain('"id":"later"');
  expect(end).toMatchObject({ rows: 300, pending: 0, seen: 300 });
});

test("a feed continues after a sequence in JSON quotes, as CouchDB's replicator sends it", async () => {
  await vault.write({ _id: "a", _rev: "1-a" });
  const last = sequenceToken(vault.store, vault.store.committedSeq);
  await vault.write({ _id: "b", _rev: "1-b" });
  for (const since of [last, JSON.stringify(last)]) {
    expect(Object.keys(selected({}, { since }))).toEqual(["b"]);
  }
});

test("a feed starts at 0 after a sequence of another database, of a CouchDB too, which the vault may have been restored from", async () => {
  await vault.write({ _id: "a", _rev: "1-a" });
  for (const since of [
    `1-h1${"0".repeat(32)}`,
    "9-g1AAAABPeJzLYWBgYMxgTmEQTM4vTc5ISXIwNDLXMwBCwxygFFMiQx4Lw38gyMpg",
    "9-g2wAAAABaANkAA9jb3VjaGRiQDEyNy4wLjAuMWwAAAACYQBu",
  ]) {
    expect(Object.keys(selected({}, { since }))).toEqual(["a"]);
  }
  for (const since of ["9-garbage", "9-g1AAA", "9"]) {
    expect(() => selected({}, { since })).toThrow("Malformed sequence");
  }
});
