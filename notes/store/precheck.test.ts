import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Answer } from "./answer.ts";
import { piecesText } from "./assemble.ts";
import { replicate } from "./change-document.ts";
import { changes } from "./changes.ts";
import { find } from "./find.ts";
import { readDocument } from "./incoming.ts";
import { disconnect, inTransaction, openStore, type Store } from "./store.ts";

let directory: string;
let store: Store;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "hearth-precheck-"));
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
  for (const [id, members] of Object.entries({
    "h:one": { type: "leaf", path: "a.md" },
    "h:two": { type: "leaf" },
    note: { type: "plain", path: "a.md" },
    odd: { type: 7, path: "a.md" },
    other: { type: "plain", path: "b.md" },
  })) {
    const body = JSON.stringify({ _rev: "1-a", ...members });
    const document = readDocument(Buffer.from(body));
    await inTransaction(store, () => replicate(store, id, document));
  }
});

afterEach(() => {
  disconnect(store);
  rmSync(directory, { recursive: true });
});

const asks: Readonly<Record<string, (selector: object) => Answer>> = {
  _find: (selector) => find(store, request(selector)),
  _changes: (selector) => changes(store, request(selector)),
};

const request = (selector: object) =>
  ({
    operation: "find",
    query: { filter: "_selector" },
    body: { kind: "memory", bytes: Buffer.from(JSON.stringify({ selector })) },
    maxDocumentSize: 1000,
  }) as const;

const CASES = [
  [{ type: "plain", path: "a.md" }, ["note"], 3],
  [{ path: "a.md", type: { $ne: "leaf" } }, ["note", "odd"], 3],
  [
    { $or: [{ type: "leaf" }, { path: "b.md" }] },
    ["h:one", "h:two", "other"],
    5,
  ],
  [{ _id: { $gt: "note" }, path: { $exists: true } }, ["odd", "other"], 2],
] as const;

test.for(
  Object.keys(asks).flatMap((name) =>
    CASES.map(([selector, ids, reads]) => ({ name, selector, ids, reads })),
  ),
)(
  "$name with $selector finds $ids and reads $reads bodies",
  ({ name, selector, ids, reads }) => {
    const bodies = vi.spyOn(store.read.body, "get");
    const answer = asks[name]!(selector);
    const text = "pieces" in answer ? piecesText([...answer.pieces]) : "";
    const found = [...text.matchAll(/"_?id":"([^"]+)"/g)].map(([, id]) => id);
    expect(found).toEqual(ids);
    expect(bodies).toHaveBeenCalledTimes(reads);
    bodies.mockRestore();
  },
);
