import { expect, test } from "vitest";
import { findUnused } from "./collection.ts";
import type { HistorySource } from "./history-source.ts";
import { NoteCipher } from "./note-cipher.ts";

const sized = (...ids: readonly string[]) =>
  ids.map((id) => [id, 1] as [string, number]);

/** A store whose second page was read after further changes. */
function sourceOf(
  rows: readonly Readonly<Record<string, unknown>>[],
  ids: readonly string[],
): HistorySource {
  const pages = rows.map((row, index) => ({
    notesSeq: 7 + index,
    rows: [{ _id: `note-${index}`, _rev: "1-a", ...row }],
    next: index + 1 < rows.length ? String(index + 1) : null,
  }));
  return {
    space: async () => ({ chunkSizes: sized(...ids) }),
    held: async (start: string) => pages[Number(start)],
  } as unknown as HistorySource;
}

const plain = new NoteCipher("vault", null, async () => "");

test("a chunk is unused when no version on any page references it; the list is dated by the first page", async () => {
  const source = sourceOf(
    [
      { type: "plain", path: "a.md", children: ["h:1"] },
      // Not a known type of note, but it has chunks.
      { type: "future", children: ["h:2"] },
      { type: "versioninfo" },
    ],
    ["h:1", "h:2", "h:3", "other"],
  );
  expect(await findUnused(source, plain)).toEqual({
    notesSeq: 7,
    unused: ["h:3"],
  });
});

test("chunks referenced outside the encryption are used, like those inside", async () => {
  const source = sourceOf([{ children: ["h:1"] }], ["h:1", "h:2", "h:3"]);
  const cipher = {
    read: async () => ({ children: ["h:2"] }),
  } as unknown as NoteCipher;
  const { unused } = await findUnused(source, cipher);
  expect(unused).toEqual(["h:3"]);
});

test("no chunk counts as unused beside an encrypted note of an unknown form", async () => {
  const source = sourceOf(
    [{ type: "newnote", path: "/\\:%=abc", mtime: null }],
    ["h:1"],
  );
  await expect(findUnused(source, plain)).rejects.toThrow(
    "the encrypted note note-0 (1-a) has an unknown form",
  );
});
