import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { refusalOf } from "../refusal.ts";
import { edit } from "./change-document.ts";
import { readDocument } from "./incoming.ts";
import { inTransaction, openStore, type Store } from "./store.ts";

let directory: string;
let store: Store;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-full-"));
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
  store.reader.close();
  store.writer.close();
  rmSync(directory, { recursive: true });
});

const write = async (id: string, size: number): Promise<string> =>
  await inTransaction(store, () =>
    edit(
      store,
      id,
      readDocument(Buffer.from(JSON.stringify({ data: "x".repeat(size) }))),
    ),
  );

test("a disk that fills up refuses the write in one sentence, changes nothing, and is forgotten when there is room again", async () => {
  await write("before", 100);
  // SQLite reports its own limit exactly as it reports a full disk.
  const pages = store.writer.prepare("PRAGMA page_count").get()!.page_count;
  store.writer.exec(`PRAGMA max_page_count = ${Number(pages) + 2}`);
  const failure = await write("large", 1_000_000).catch(
    (error: unknown) => error,
  );
  expect(refusalOf(failure)).toMatchObject({
    code: "insufficient_storage",
    status: 507,
    message:
      "The disk that holds the notes is full. Free some space there, then sync again.",
  });
  expect(store.totals).toMatchObject({ updateSeq: 1, documents: 1 });
  store.writer.exec("PRAGMA max_page_count = 1000000");
  await write("large", 1_000_000);
  expect(store.totals).toMatchObject({ updateSeq: 2, documents: 2 });
});

test("a failed transaction leaves the counters and the documents as they were", async () => {
  await write("a", 10);
  await expect(
    inTransaction(store, () => {
      edit(store, "b", readDocument(Buffer.from("{}")));
      throw new Error("in the middle");
    }),
  ).rejects.toThrow("in the middle");
  expect(store.totals).toMatchObject({ updateSeq: 1, documents: 1 });
  expect(store.read.document.get("b")).toBeUndefined();
});
