import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { beforeEach, expect, test } from "vitest";
import { temporaryStore } from "../../test/contract/temporary-store.ts";
import { storageFailureOf } from "../refusal.ts";
import { allDocs } from "./all-docs.ts";
import type { Answer } from "./answer.ts";
import { piecesText } from "./assemble.ts";
import { bulkGet } from "./bulk-get.ts";
import { changes } from "./changes.ts";
import { compact } from "./compaction.ts";
import { history } from "./history.ts";
import type { FromWorker, StoreRequest } from "./protocol.ts";
import { fillChecksums } from "./fill-checksums.ts";
import { getDocument } from "./read-document.ts";
import { revsDiff } from "./revs-diff.ts";
import { disconnect, openStore } from "./store.ts";
import { waitFor } from "../../test/wait-for.ts";

const messages: FromWorker[] = [];
const temporary = temporaryStore((message) => messages.push(message));

const GOOD = { _id: "good", _rev: "1-a", type: "plain", data: "kept" };
const NOTE = { _id: "note", _rev: "1-b", type: "plain", data: "written" };

beforeEach(async () => {
  messages.length = 0;
  await temporary.write(GOOD);
  await temporary.write(NOTE);
});

/** As a disk that returns other bytes than were written: the text stays valid JSON. */
function damage(table: "revisions" | "history" = "revisions"): void {
  temporary.store.writer.exec(
    `UPDATE ${table} SET body = CAST(replace(CAST(body AS TEXT), 'written', 'wrotten') AS BLOB)`,
  );
}

const request = (
  query: StoreRequest["query"],
  more: Partial<StoreRequest> = {},
): StoreRequest => ({
  operation: "getDocument",
  query,
  maxDocumentSize: 1,
  ...more,
});

const body = (content: unknown) => ({
  body: {
    kind: "memory" as const,
    bytes: Buffer.from(JSON.stringify(content)),
  },
});

const textOf = (answer: Answer) =>
  "pieces" in answer ? piecesText([...answer.pieces]) : answer.body;

const read = (id: string) =>
  textOf(getDocument(temporary.store, request({}, { id })));

const reported = () =>
  messages.flatMap((message) =>
    message.kind === "refused"
      ? [[message.storageFailure, message.detail] as const]
      : [],
  );

const REPORT = [
  "damaged_document",
  'Error: the stored content of "note" 1-b is damaged: check the disk, then run `hearth jobs run notes-drill`, which replaces current content from the newest backup',
];

test("a damaged document is rejected as a failure of the disk, others are read", () => {
  damage();
  expect(JSON.parse(read("good")!)).toEqual(GOOD);
  const failure = (() => {
    try {
      return read("note");
    } catch (error) {
      return error;
    }
  })();
  expect(storageFailureOf(failure)).toBe("damaged_document");
});

test("in answers of several documents a damaged one is missing, and reported", () => {
  damage();
  const { store } = temporary;
  const got = textOf(
    bulkGet(
      store,
      request({}, body({ docs: [{ id: "note" }, { id: "good" }] })),
    ),
  );
  expect(JSON.parse(got!)).toMatchObject({
    results: [
      { docs: [{ error: { id: "note", error: "not_found" } }] },
      { docs: [{ ok: GOOD }] },
    ],
  });
  expect(reported()).toEqual([REPORT]);
  for (const list of [allDocs, changes]) {
    messages.length = 0;
    const text = textOf(list(store, request({ include_docs: "true" })))!;
    expect(text).toContain('"kept"');
    expect(text).toContain('"doc":null');
    expect(text).not.toContain("wrotten");
    expect(reported()).toEqual([REPORT]);
  }
});

test("a device that sends a damaged revision again replaces it, and other devices get it as a change", async () => {
  damage();
  const { store } = temporary;
  const offer = async () =>
    (await revsDiff(store, request({}, body({ note: ["1-b"] })))) as {
      readonly body: string;
    };
  textOf(allDocs(store, request({ include_docs: "true" })));
  expect(JSON.parse((await offer()).body)).toEqual({
    note: { missing: ["1-b"] },
  });
  const before = { ...store.totals };
  await temporary.write(NOTE);
  expect(JSON.parse(read("note")!)).toEqual(NOTE);
  expect(JSON.parse((await offer()).body)).toEqual({});
  expect(store.totals).toEqual({ ...before, updateSeq: before.updateSeq + 1 });
  await temporary.write(NOTE);
  expect(store.totals.updateSeq).toBe(before.updateSeq + 1);
});

test("a damaged past version is marked in the history, and left out of the list by which unused chunks are found", async () => {
  const { store } = temporary;
  await temporary.write({
    ...NOTE,
    _rev: "2-c",
    _revisions: { start: 2, ids: ["c", "b"] },
    data: "newer",
  });
  const asked = (query: StoreRequest["query"]) => () =>
    textOf(history(store, request(query)));
  compact(store);
  await waitFor("compaction", async () => !store.compacting);
  expect(asked({ id: "note" })()).toContain('"written"');
  expect(asked({ held: "history-0" })()).toContain('"written"');
  damage("history");
  const rows = (query: StoreRequest["query"]) =>
    (JSON.parse(asked(query)()!) as { readonly rows: readonly unknown[] }).rows;
  const lost = { damaged: true, doc: { _id: "note", _rev: "1-b" } };
  expect(rows({ id: "note" })).toMatchObject([{ doc: { _rev: "2-c" } }, lost]);
  expect(rows({ held: "history-0" })).toEqual([]);
  expect(reported()).toEqual([REPORT, REPORT]);
});

test.each([
  ["damaged", () => damage()],
  [
    "lost",
    () =>
      temporary.store.writer.exec("DELETE FROM revisions WHERE rev = '1-b'"),
  ],
])(
  "a %s current version keeps chunks from being counted as unused",
  (_how, harm) => {
    harm();
    expect(() =>
      textOf(history(temporary.store, request({ held: "" }))),
    ).toThrow("is damaged");
  },
);

test("a leaf whose body the file has lost counts as damaged, and is replaced by a device that sends it again", async () => {
  const { store } = temporary;
  store.writer.exec("DELETE FROM revisions WHERE rev = '1-b'");
  expect(() => read("note")).toThrow("is damaged");
  textOf(allDocs(store, request({ include_docs: "true" })));
  expect(reported()).toEqual([REPORT]);
  await temporary.write(NOTE);
  expect(JSON.parse(read("note")!)).toEqual(NOTE);
  const superseding = { start: 2, ids: ["c", "b"] };
  await temporary.write({ ...NOTE, _rev: "2-c", _revisions: superseding });
  store.writer.exec("DELETE FROM revisions WHERE rev = '1-b'");
  await temporary.write(NOTE);
  const old = request({ rev: "1-b" }, { id: "note" });
  expect(() => getDocument(store, old)).toThrow("missing");
});

test("a file of an earlier release gets checksums, and such a release writes to a file with them", async () => {
  const file = join(temporary.directory, "earlier.sqlite");
  const open = () =>
    openStore(
      {
        name: "earlier",
        file,
        kind: "vault",
        instanceStartTime: "1",
        spoolDirectory: dirname(file),
        passwordIterations: 1,
      },
      () => undefined,
    );
  disconnect(open());
  const earlier = new DatabaseSync(file);
  earlier.exec(`
    ALTER TABLE revisions DROP COLUMN sum;
    ALTER TABLE history DROP COLUMN sum;
  `);
  const insert = (number: number) =>
    earlier.exec(`
      INSERT INTO documents VALUES (${number}, 'n${number}', ${number}, '1-a', 0, 0, '[{"pos":1,"ids":["a",{"status":"available"},[]]}]');
      INSERT INTO revisions (document, rev, leaf, deleted, type, size, body) VALUES (${number}, '1-a', 1, 0, NULL, 0, CAST('"x":1' AS BLOB));
    `);
  insert(1);
  disconnect(open());
  insert(2);
  earlier.close();
  const store = open();
  for (const id of ["n1", "n2"]) {
    expect(textOf(getDocument(store, request({}, { id })))).toContain('"x":1');
  }
  const unsummed = () =>
    store.read
      .other("SELECT COUNT(*) AS n FROM revisions WHERE sum IS NULL")
      .get()!["n"];
  expect(unsummed()).toBe(2);
  await fillChecksums(store);
  expect(unsummed()).toBe(0);
  expect(store.read.totals.get()!["update_seq"]).toBe(0);
  store.writer.exec("UPDATE revisions SET body = CAST('\"x\":2' AS BLOB)");
  expect(() => getDocument(store, request({}, { id: "n1" }))).toThrow(
    "is damaged",
  );
  disconnect(store);
});
