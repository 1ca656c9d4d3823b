import { beforeEach, expect, test, vi } from "vitest";
import {
  bodyOf,
  temporaryStore,
  textOf,
} from "../../test/contract/temporary-store.ts";
import type { Answer } from "./answer.ts";
import { changes } from "./changes.ts";
import { find } from "./find.ts";

const vault = temporaryStore();

beforeEach(async () => {
  for (const [_id, members] of Object.entries({
    "h:one": { type: "leaf", path: "a.md" },
    "h:two": { type: "leaf" },
    note: { type: "plain", path: "a.md" },
    odd: { type: 7, path: "a.md" },
    other: { type: "plain", path: "b.md" },
  })) {
    await vault.write({ _id, _rev: "1-a", ...members });
  }
});

const asks: Readonly<Record<string, (selector: object) => Answer>> = {
  _find: (selector) => find(vault.store, request(selector)),
  _changes: (selector) => changes(vault.store, request(selector)),
};

const request = (selector: object) =>
  ({
    operation: "find",
    query: { filter: "_selector" },
    body: bodyOf({ selector }),
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
  // Conditions on the document itself.
  [{ $keyMapMatch: { $eq: "path" } }, ["h:one", "note", "odd", "other"], 5],
  [{ type: "plain", $keyMapMatch: { $eq: "path" } }, ["note", "other"], 3],
] as const;

test.for(
  Object.keys(asks).flatMap((name) =>
    CASES.map(([selector, ids, reads]) => ({ name, selector, ids, reads })),
  ),
)(
  "$name with $selector finds $ids and reads $reads bodies",
  ({ name, selector, ids, reads }) => {
    const bodies = vi.spyOn(vault.store.read.body, "get");
    const text = textOf(asks[name]!(selector));
    const found = [...text.matchAll(/"_?id":"([^"]+)"/g)].map(([, id]) => id);
    expect(found).toEqual(ids);
    expect(bodies).toHaveBeenCalledTimes(reads);
    bodies.mockRestore();
  },
);
