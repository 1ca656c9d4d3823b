import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { temporaryStore, textOf } from "../../test/contract/temporary-store.ts";
import { edit } from "./change-document.ts";
import { compact } from "./compaction.ts";
import { readDocument } from "./incoming.ts";
import { space } from "./space.ts";
import { inTransaction } from "./store.ts";
import { waitFor } from "../../test/wait-for.ts";

const vault = temporaryStore();

const put = async (
  id: string,
  document: Readonly<Record<string, unknown>>,
): Promise<string> =>
  await inTransaction(vault.store, () =>
    edit(vault.store, id, readDocument(Buffer.from(JSON.stringify(document)))),
  );

interface Measured {
  readonly chunkSizes: readonly (readonly [string, number])[];
  readonly notes: { readonly count: number };
  readonly superseded: { readonly count: number; readonly bytes: number };
  readonly history: { readonly versions: number };
  readonly file: number;
  readonly free: number;
}

function measured(): Measured {
  return JSON.parse(textOf(space(vault.store))) as Measured;
}

test("every chunk is listed with its size; earlier versions count once, before and after a compaction", async () => {
  // More than one page.
  const ids = Array.from({ length: 1200 }, (_, at) => `h:${at}`);
  for (const id of ids) {
    await put(id, { type: "leaf", data: id.padEnd(100) });
  }
  const note = { type: "plain", path: "a.md", mtime: 1, children: ["h:0"] };
  const first = await put("a.md", note);
  // A version with no duration is not kept.
  await sleep(5);
  await put("a.md", { ...note, _rev: first, children: ["h:1"] });
  const other = await put("settings", { big: "x".repeat(5000) });
  await put("settings", { _rev: other });

  const before = measured();
  expect(before.chunkSizes.map(([id]) => id)).toEqual(ids);
  expect(before.chunkSizes.every(([, bytes]) => bytes > 100)).toBe(true);
  expect(before).toMatchObject({
    notes: { count: 1 },
    chunks: { count: 1200 },
    other: { count: 1 },
    superseded: { count: 1 },
    history: { versions: 1 },
  });
  expect(before.superseded.bytes).toBeGreaterThan(5000);

  compact(vault.store);
  await waitFor("the end of the compaction", () => !vault.store.compacting);
  const after = measured();
  expect(after).toMatchObject({
    chunkSizes: before.chunkSizes,
    notes: before.notes,
    superseded: { count: 0, bytes: 0 },
    history: before.history,
  });
});
