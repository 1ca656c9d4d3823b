import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readBulkBody } from "./bulk-body.ts";
import type { Body } from "./protocol.ts";

const MAX = 3_000_000;
let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-bulk-"));
});

afterAll(() => {
  rmSync(directory, { recursive: true });
});

const inMemory = (text: string): Body => ({
  kind: "memory",
  bytes: Uint8Array.from(Buffer.from(text)),
});

function inFile(text: string): Body {
  const path = join(directory, `body-${Math.random()}`);
  writeFileSync(path, text);
  return { kind: "file", path, length: Buffer.byteLength(text) };
}

const read = async (body: Body) =>
  await readBulkBody(body, MAX, async () => undefined);

test("documents of a body longer than the window are read back as sent", async () => {
  // Lengths around the window of 1 MiB, with multi-byte characters at its edges.
  const docs = [10, 1_048_500, 70, 2_500_000, 0, 600_000, 600_000].map(
    (length, index) => ({
      _id: `doc ${index} é`,
      type: "leaf",
      data: "ü".repeat(length / 2),
    }),
  );
  const text = JSON.stringify({ docs, new_edits: false });
  for (const body of [inFile(text), inMemory(text)]) {
    const { entries, newEdits, close } = await read(body);
    expect(newEdits).toBe(false);
    expect(
      entries.map(({ read: again }) => {
        const document = again();
        return {
          _id: document.id,
          ...(JSON.parse(`{${document.body.toString()}}`) as object),
        };
      }),
    ).toEqual(docs);
    close();
  }
});

test("a document far above the limit is rejected without being read whole", async () => {
  const text = JSON.stringify({
    docs: [{ _id: "huge", data: "x".repeat(9_000_000) }],
  });
  await expect(read(inFile(text))).rejects.toMatchObject({
    code: "document_too_large",
  });
});

test.each([
  ['{"docs":[{}', "invalid UTF-8 JSON"],
  ['{"docs":[{},]}', "invalid UTF-8 JSON"],
  ['{"docs":[{}]} x', "invalid UTF-8 JSON"],
  ['{"docs":[{}],}', "invalid UTF-8 JSON"],
  ['{"docs" [{}]}', "invalid UTF-8 JSON"],
  ["", "invalid UTF-8 JSON"],
  ["[]", "Request body must be a JSON object"],
  ["{}", "POST body must include `docs` parameter."],
])("%j is rejected", async (text, sentence) => {
  await expect(read(inMemory(text))).rejects.toThrow(sentence);
});

test.each([
  ["more than 50,000 documents", "{}", 50_001],
  [
    "ids of more than 8,000,000 characters",
    `{"_id":"${"x".repeat(900_000)}"}`,
    9,
  ],
])("a body with %s is rejected", async (_what, document, count) => {
  const body = (documents: number): Body =>
    inMemory(`{"docs":[${Array(documents).fill(document).join(",")}]}`);
  await expect(read(body(count))).rejects.toMatchObject({ code: "too_large" });
  expect((await read(body(count - 1))).entries).toHaveLength(count - 1);
});

test("a body may contain new_edits before or after the documents, and white space", async () => {
  const { entries, newEdits } = await read(
    inMemory(' { "new_edits" : false , "docs" : [ { "_id" : "a" } ] } \n'),
  );
  expect(newEdits).toBe(false);
  expect(entries[0]?.id).toBe("a");
});
