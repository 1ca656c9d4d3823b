import { createPBKDF2Salt } from "octagonal-wheels/encryption/hkdf";
import { expect, test } from "vitest";
import type { HistorySource } from "./history-source.ts";
import { encryptText, NoteCipher } from "./note-cipher.ts";
import { readVersions, restoreVault } from "./vault-past.ts";

const PASSPHRASE = "not-a-secret-passphrase";
const THEN = 1_000;
const NOW = 2_000;

const salt = createPBKDF2Salt();
const openWith = (passphrase: string) =>
  new NoteCipher(
    "vault",
    Buffer.from(salt).toString("base64"),
    async () => passphrase,
  );

interface Version {
  readonly _id: string;
  readonly _rev: string;
  readonly path: string;
  readonly type: "plain";
  readonly children: readonly string[];
}

async function note(_id: string, _rev: string, text: string): Promise<Version> {
  const inside = { path: `${_id}.md`, mtime: 1, ctime: 1, size: 1 };
  const json = JSON.stringify({ ...inside, children: [text] });
  return poison(_id, _rev, await encryptText(json, PASSPHRASE, salt));
}

function poison(_id: string, _rev: string, sealed: string): Version {
  return { _id, _rev, path: `/\\:${sealed}`, type: "plain", children: [] };
}

/** A vault as it was and is; `written` gets what is restored. */
function sourceOf(
  then: readonly Version[],
  now: readonly Version[],
  written: unknown[],
): HistorySource {
  const rowOf = (doc: Version) => ({ doc, since: 0, until: null });
  return {
    summary: async () => ({ now: NOW }),
    notesAt: async (at: number) => ({
      at,
      rows: (at === THEN ? then : now).map(rowOf),
      next: null,
    }),
    versions: async () => [...then, ...now].map(rowOf),
    write: async (documents: readonly unknown[]) => {
      written.push(...documents);
    },
  } as unknown as HistorySource;
}

const options = { at: THEN, path: undefined, now: NOW };

test("notes that a member made unreadable are restored, and others that are unreadable stay", async () => {
  const written: unknown[] = [];
  const source = sourceOf(
    [
      await note("kept", "1-a", "one"),
      await note("overwritten", "1-b", "two"),
      poison("repaired", "1-c", "%=poison"),
    ],
    [
      poison("added", "1-x", await encryptText("{}", PASSPHRASE, salt)),
      await note("kept", "1-a", "one"),
      poison("overwritten", "2-b", "%=poison"),
      await note("repaired", "2-c", "three"),
    ],
    written,
  );
  const cipher = openWith(PASSPHRASE);
  expect(await restoreVault(source, cipher, options)).toEqual({
    at: THEN,
    written: ["overwritten.md"],
    deleted: [],
    unchanged: 1,
    unreadable: ["added", "repaired"],
  });
  expect(written).toMatchObject([{ _id: "overwritten", _rev: "2-b" }]);
  const versions = await readVersions(source, cipher, "overwritten");
  expect(versions.map(({ note: { _rev } }) => _rev)).toEqual([
    "1-a",
    "1-b",
    "1-a",
    "2-c",
  ]);
});

test("a note whose past version is damaged stays as it is", async () => {
  const written: unknown[] = [];
  const now = [await note("damaged", "2-a", "two")];
  const source: HistorySource = {
    ...sourceOf([], now, written),
    notesAt: async (at) => ({
      at,
      rows:
        at === THEN
          ? [
              {
                since: 0,
                until: 1,
                damaged: true,
                doc: { _id: "damaged", _rev: "1-a" },
              },
            ]
          : now.map((doc) => ({ doc: { ...doc }, since: 1, until: null })),
      next: null,
    }),
  };
  expect(
    await restoreVault(source, openWith(PASSPHRASE), options),
  ).toMatchObject({ deleted: [], unreadable: ["damaged"] });
  expect(written).toEqual([]);
});

test("with a wrong passphrase nothing is restored", async () => {
  const written: unknown[] = [];
  const source = sourceOf(
    [await note("a", "1-a", "one")],
    [await note("a", "2-a", "two")],
    written,
  );
  await expect(
    restoreVault(source, openWith("another"), options),
  ).rejects.toThrow("wrong passphrase for vault vault.");
  expect(written).toEqual([]);
});
