import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryStore, textOf } from "../../test/contract/temporary-store.ts";
import type { Answer } from "./answer.ts";
import { bulkDocs } from "./bulk-docs.ts";
import { getLocal, putLocal } from "./local-documents.ts";
import type { StoreRequest } from "./protocol.ts";
import { exclusively, type Store } from "./store.ts";
import { postDocument, putDocument } from "./write-document.ts";

const vault = temporaryStore();

type Write = (store: Store, request: StoreRequest) => Promise<Answer>;

test.for<readonly [string, Write, (text: string) => string]>([
  ["PUT", putDocument, (text) => text],
  ["POST", postDocument, (text) => text],
  ["PUT of a local document", putLocal, (text) => text],
  ["_bulk_docs", bulkDocs, (text) => `{"docs":[${text}]}`],
])(
  "of several large bodies, only the one being written is in memory: %s",
  async ([, write, bodyOf]) => {
    const { store, directory } = vault;
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
    expect(JSON.parse(textOf(answer))).toMatchObject({ state: "second" });
  },
);
