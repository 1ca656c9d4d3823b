import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { replicate } from "./change-document.ts";
import { readDocument } from "./incoming.ts";
import { getDocument } from "./read-document.ts";
import { disconnect, inTransaction, openStore, type Store } from "./store.ts";

let directory: string;
let store: Store;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "hearth-read-"));
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
  const note = readDocument(Buffer.from('{"_rev":"2-b"}'));
  await inTransaction(store, () => replicate(store, "note", note));
});

afterEach(() => {
  disconnect(store);
  rmSync(directory, { recursive: true });
});

test.for([
  ['"2-b"', 304],
  ['"1-a", "2-b"', 304],
  ['"2-b","1-a"', 304],
  ['"1-a", "3-c"', 200],
  ["2-b", 200],
] as const)("If-None-Match: %s gets %i", ([ifNoneMatch, status]) => {
  const answer = getDocument(store, {
    operation: "getDocument",
    id: "note",
    query: {},
    ifNoneMatch,
    maxDocumentSize: 1000,
  });
  expect(answer.status).toBe(status);
});
