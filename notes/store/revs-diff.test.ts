import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import {
  bodyOf,
  temporaryStore,
  textOf,
} from "../../test/contract/temporary-store.ts";
import { revsDiff } from "./revs-diff.ts";

const vault = temporaryStore();

const difference = async (
  wanted: Readonly<Record<string, readonly string[]>>,
): Promise<unknown> =>
  JSON.parse(
    textOf(
      await revsDiff(vault.store, {
        operation: "revsDiff",
        query: {},
        body: bodyOf(wanted),
        maxDocumentSize: 1000,
      }),
    ),
  );

test("missing revisions are listed with leaves that may be their ancestors", async () => {
  await vault.write({ _id: "note", _rev: "1-a" });
  expect(
    await difference({
      note: ["1-a", "2-b"],
      'new "note"': ["1-a"],
      __proto__x: ["1-a"],
    }),
  ).toEqual({
    note: { missing: ["2-b"], possible_ancestors: ["1-a"] },
    'new "note"': { missing: ["1-a"] },
    __proto__x: { missing: ["1-a"] },
  });
  expect(await difference({ note: ["1-a"] })).toEqual({});
});

test("other requests run while many documents are compared", async () => {
  const wanted = Object.fromEntries(
    Array.from({ length: 30_000 }, (_each, n) => [`h:${n}`, ["1-a"]]),
  );
  const events: string[] = [];
  const comparing = difference(wanted).then(() => events.push("compared"));
  await setImmediate();
  events.push("another request");
  await comparing;
  expect(events).toEqual(["another request", "compared"]);
});
