import { beforeEach, expect, test } from "vitest";
import { temporaryStore } from "../../test/contract/temporary-store.ts";
import { refusalOf } from "../refusal.ts";
import { edit } from "./change-document.ts";
import { readDocument } from "./incoming.ts";
import { putRevsLimit, putSecurity, revsLimit } from "./administration.ts";
import type { Answer, Piece } from "./answer.ts";
import { piecesText } from "./assemble.ts";
import { changes } from "./changes.ts";
import { compact } from "./compaction.ts";
import { find } from "./find.ts";
import type { FromWorker, StoreRequest } from "./protocol.ts";
import { inTransaction, type Store } from "./store.ts";

const messages: FromWorker[] = [];
const temporary = temporaryStore((message) => messages.push(message));
let store: Store;

beforeEach(() => {
  messages.length = 0;
  ({ store } = temporary);
});

const write = async (id: string, size: number): Promise<string> =>
  await inTransaction(store, () =>
    edit(
      store,
      id,
      readDocument(Buffer.from(JSON.stringify({ data: "x".repeat(size) }))),
    ),
  );

test("on a full disk a write is rejected with one message and changes nothing; writes succeed once space is free", async () => {
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

test("a failed transaction leaves the counters and the documents unchanged", async () => {
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

const request = (
  operation: StoreRequest["operation"],
  body?: unknown,
): StoreRequest => ({
  operation,
  query: {},
  ...(body === undefined
    ? {}
    : { body: { kind: "memory", bytes: Buffer.from(JSON.stringify(body)) } }),
  maxDocumentSize: 1,
});

const publishedStates = () =>
  messages.flatMap((message) =>
    message.kind === "state" ? [message.state] : [],
  );

test("settings rejected by a full disk do not take effect with the next write", async () => {
  const before = store.settings.security;
  store.writer.exec(
    "CREATE TEMP TRIGGER full AFTER UPDATE ON main.properties BEGIN SELECT RAISE(ROLLBACK, 'full'); END",
  );
  const open = request("putSecurity", { members: { names: ["eve"] } });
  await expect(putSecurity(store, open)).rejects.toThrow("full");
  const limit = request("putRevsLimit", 7);
  await expect(putRevsLimit(store, limit)).rejects.toThrow("full");
  store.writer.exec("DROP TRIGGER full");
  await write("later", 10);
  expect(publishedStates()).toMatchObject([{ security: before, updateSeq: 1 }]);
  expect(revsLimit(store)).toMatchObject({ body: "1000\n" });
  await putRevsLimit(store, limit);
  await putSecurity(store, open);
  expect(revsLimit(store)).toMatchObject({ body: "7\n" });
  expect(publishedStates().at(-1)).toMatchObject({
    security: { members: { names: ["eve"] } },
    updateSeq: 2,
  });
});

test("a compaction that starts during a write does not announce what is not committed", async () => {
  await inTransaction(store, async () => {
    edit(store, "a", readDocument(Buffer.from("{}")));
    compact(store);
    store.closing = true;
  });
  expect(publishedStates()[0]).toMatchObject({ updateSeq: 0 });
  expect(publishedStates().at(-1)).toMatchObject({ updateSeq: 1 });
});

test.each([
  ["_changes", () => changes(store, request("changes"))],
  ["_find", () => find(store, request("find", { selector: {}, limit: 1000 }))],
] as const)(
  "a running %s answer is completed when a write reopens a read-only vault",
  async (_what, answerOf) => {
    await inTransaction(store, () => {
      for (let index = 0; index < 250; index += 1) {
        edit(store, `d${index}`, readDocument(Buffer.from("{}")));
      }
    });
    // As on a full disk.
    store.reader.close();
    Object.assign(store, {
      reader: store.writer,
      read: store.write,
      readOnly: true,
    });
    const pieces = piecesOf(answerOf());
    const first = [pieces.next().value, pieces.next().value] as Piece[];
    await write("x", 1);
    expect(store.readOnly).toBe(false);
    const text = piecesText([...first, ...pieces]);
    const ids = [...text.matchAll(/"_?id":"(d\d+)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(250);
  },
);

function piecesOf(answer: Answer): Generator<Piece, unknown> {
  if (!("pieces" in answer)) {
    throw new Error("the answer has no pieces");
  }
  return answer.pieces;
}
