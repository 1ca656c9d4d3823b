import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Answer } from "./answer.ts";
import { bulkDocs } from "./bulk-docs.ts";
import { getLocal, putLocal } from "./local-documents.ts";
import type { StoreRequest } from "./protocol.ts";
import { disconnect, exclusively, openStore, type Store } from "./store.ts";
import { postDocument, putDocument } from "./write-document.ts";

let directory: string;
let store: Store;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-large-"));
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

type Write = (store: Store, request: StoreRequest) => Promise<Answer>;

test.for<readonly [string, Write, (text: string) => string]>([
  ["PUT", putDocument, (text) => text],
  ["POST", postDocument, (text) => text],
  ["PUT of a local document", putLocal, (text) => text],
  ["_bulk_docs", bulkDocs, (text) => `{"docs":[${text}]}`],
])(
  "of several large bodies, only the one being written is in memory: %s",
  async ([, write, bodyOf]) => {
    const send = (name: string): Promise<Answer> =>
      write(store, {
        operation: "putDocument",
        id: "_local/note",
        query: {},
        body: { kind: "file", path: join(directory, name), length: 100 },
        maxDocumentSize: 1000,
      });
    const text = (state: string): string =>
      bodyOf(`{"_id":"_local/note","state":"${state}"}`).padEnd(100);
    const release = Promise.withResolvers<void>();
    const busy = exclusively(store, () => release.promise);
    writeFileSync(join(directory, "first"), text("first"));
    writeFileSync(join(directory, "second"), text("read too early"));
    const writes = [send("first"), send("second")];
    // Both have been called, and the first one waits for its transaction.
    await new Promise(setImmediate);
    writeFileSync(join(directory, "second"), text("second"));
    release.resolve();
    await Promise.all([busy, ...writes]);
    const answer = getLocal(store, {
      operation: "getLocal",
      id: "_local/note",
      query: {},
      maxDocumentSize: 0,
    });
    expect("body" in answer && JSON.parse(answer.body)).toMatchObject({
      state: "second",
    });
  },
);
