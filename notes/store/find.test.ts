import { beforeEach, expect, test } from "vitest";
import {
  bodyOf,
  temporaryStore,
  textOf,
} from "../../test/contract/temporary-store.ts";
import { find } from "./find.ts";

const vault = temporaryStore();

interface Found {
  readonly ids: readonly string[];
  readonly bookmark: string;
}

function search(body: Readonly<Record<string, unknown>>): Found {
  const answer = find(vault.store, {
    operation: "find",
    query: {},
    body: bodyOf(body),
    maxDocumentSize: 1000,
  });
  const { docs, bookmark } = JSON.parse(textOf(answer)) as {
    readonly docs: readonly { readonly _id: string }[];
    readonly bookmark: string;
  };
  return { ids: docs.map(({ _id }) => _id), bookmark };
}

beforeEach(async () => {
  for (let n = 1; n <= 250; n += 1) {
    const _id = String(n).padStart(3, "0");
    await vault.write({ _id, _rev: "1-a", even: n % 2 === 0 });
  }
});

test("documents are sorted by _id, in both directions, if the selector limits it", () => {
  const selector = { _id: { $gt: "100", $lte: "104" } };
  const ascending = ["101", "102", "103", "104"];
  for (const sort of [["_id"], [{ _id: "asc" }]]) {
    expect(search({ selector, sort }).ids).toEqual(ascending);
  }
  const sort = [{ _id: "desc" }];
  expect(search({ selector, sort }).ids).toEqual(ascending.toReversed());
  const all = search({
    selector: { _id: { $gt: null }, even: true },
    sort,
    limit: 1000,
  });
  expect(all.ids).toHaveLength(125);
  expect(all.ids.at(0)).toBe("250");
  expect(all.ids.at(-1)).toBe("002");
});

test("a bookmark continues a search in its direction", () => {
  const query = { selector: { _id: { $gte: "002" } }, limit: 2 };
  for (const [sort, pages] of [
    [undefined, ["002", "003", "004", "005"]],
    [[{ _id: "desc" }], ["250", "249", "248", "247"]],
  ] as const) {
    const first = search({ ...query, sort });
    const second = search({ ...query, sort, bookmark: first.bookmark });
    expect([...first.ids, ...second.ids]).toEqual(pages);
  }
});

test("the paths of `fields` select members, and their number is limited", () => {
  const selector = { _id: "002" };
  const found = (fields: readonly unknown[]) =>
    JSON.parse(
      textOf(
        find(vault.store, {
          operation: "find",
          query: {},
          body: bodyOf({ selector, fields }),
          maxDocumentSize: 1000,
        }),
      ),
    ) as { readonly docs: readonly unknown[] };
  expect(found(["even", "missing", "even.deeper"]).docs).toEqual([
    { even: true },
  ]);
  expect(found(Array(10_000).fill("even")).docs).toEqual([{ even: true }]);
  expect(() => found(Array(5001).fill("even.deeper"))).toThrow(
    "`fields` may contain at most 10000 names of members.",
  );
});

test("any other order needs an index", () => {
  const limited = { _id: { $gt: "100" } };
  for (const query of [
    { selector: { even: true }, sort: [{ _id: "desc" }] },
    { selector: { _id: { $regex: "^1" } }, sort: ["_id"] },
    { selector: limited, sort: ["even"] },
    { selector: limited, sort: ["_id", "even"] },
    { selector: limited, sort: [{ _id: "up" }] },
  ]) {
    expect(() => search(query)).toThrow("No index exists for this sort");
  }
});
