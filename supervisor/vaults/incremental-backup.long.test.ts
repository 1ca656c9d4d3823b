import {
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serversUnderTest } from "../../test/contract/server-under-test.ts";
import { bytesOf, measureBackups } from "../backup/size-cap.ts";
import { MANIFEST_NAME, writeManifest } from "../backup/manifest.ts";
import {
  noteDocuments,
  openNotesTestbed,
  type NotesTestbed,
} from "../../test/supervisor/notes-testbed.ts";
import { backupNotes, type CreatedBackup } from "./backup.ts";
import { Database } from "./database.ts";
import { partsToMerge } from "./earlier-backup.ts";
import { restoreNotes } from "./restore.ts";
import { drillRestore } from "./restore-drill.ts";

const VAULT = "vault-nightly";
const quiet = { signal: new AbortController().signal, progress: () => {} };

describe.each(serversUnderTest())("on $name", (under) => {
  let testbed: NotesTestbed;
  let database: Database;
  let restored = 0;

  beforeAll(async () => {
    testbed = await openNotesTestbed(under);
    database = new Database(testbed.couch, VAULT);
    await database.create();
    // Larger than the parts that are rewritten each night.
    for (let file = 0; file < 8; file += 1) {
      await database.write(
        noteDocuments(`large ${file}.bin`, noise(400_000), 1),
      );
    }
  });
  afterAll(() => testbed.close());

  const backup = (): Promise<CreatedBackup> =>
    backupNotes({
      couch: testbed.couch,
      escrow: testbed.escrow,
      directory: testbed.backups,
      now: testbed.now,
      ...quiet,
    });
  const stored = () =>
    bytesOf(measureBackups(join(testbed.directory, "backups")));
  const entryOf = ({ manifest }: CreatedBackup) => manifest.vaults[0]!;

  async function leaves(of: Database): Promise<readonly unknown[]> {
    const { results } = await of.changes({
      since: "0",
      limit: 100_000,
      allLeaves: true,
    });
    const wanted = results.flatMap(({ id, changes }) =>
      changes.map(({ rev }) => ({ id, rev })),
    );
    return (await of.revisions(wanted)).toSorted((a, b) =>
      `${a._id} ${a._rev}` < `${b._id} ${b._rev}` ? -1 : 1,
    );
  }

  /** Restores to another vault and returns its content. */
  async function restore(path: string): Promise<readonly unknown[]> {
    const as = `vault-restored-${(restored += 1)}`;
    await restoreNotes({
      ...testbed,
      ...quiet,
      backup: path,
      vault: VAULT,
      as,
    });
    const target = new Database(testbed.couch, as);
    const found = await leaves(target);
    await target.drop();
    return found;
  }

  test("each backup stores only the vault's changes and restores to its own state", async () => {
    const first = await backup();
    const states = [{ ...first, leaves: await leaves(database) }];
    const full = stored();
    expect(full).toBeGreaterThan(2_000_000);

    states.push({ ...(await backup()), leaves: await leaves(database) });
    expect(stored() - full).toBeLessThan(10_000);

    const note = async (text: string) => {
      const known = await database.document("a.md");
      await database.put("a.md", { ...known, type: "plain", data: text });
    };
    await note("first");
    states.push({ ...(await backup()), leaves: await leaves(database) });
    await note("second");
    // A conflict, of which one leaf is edited later, and a document that is deleted.
    for (const rev of ["1-aa", "1-bb"]) {
      await database.write(
        [{ _id: "both.md", _rev: `${rev}${"0".repeat(30)}`, data: rev }],
        { keepRevisions: true },
      );
    }
    states.push({ ...(await backup()), leaves: await leaves(database) });
    await database.write([
      { _id: "both.md", _rev: `1-aa${"0".repeat(30)}`, data: "edited" },
    ]);
    const gone = await database.document("large 3.bin");
    await database.write([
      { _id: "large 3.bin", _rev: gone?._rev, _deleted: true },
    ]);
    states.push({ ...(await backup()), leaves: await leaves(database) });
    expect(stored() - full).toBeLessThan(50_000);

    // Small backups do not accumulate files.
    expect(entryOf(states.at(-1)!).parts).toHaveLength(1);
    for (const state of states) {
      expect(await restore(state.path)).toEqual(state.leaves);
      await drillRestore({ ...testbed, ...quiet, backup: state.path });
    }
    // The oldest can be removed: files that others need remain.
    rmSync(states[0]!.path, { recursive: true });
    expect(await restore(states.at(-1)!.path)).toEqual(states.at(-1)!.leaves);
  });

  test("deleted data does not stay: when most of the old files is no longer needed, everything is written again", async () => {
    const { results } = await database.changes({
      since: "0",
      limit: 1000,
      allLeaves: true,
    });
    for (const { id, changes } of results.filter(({ id }) =>
      id.startsWith("h:"),
    )) {
      await database.write(
        changes.map(({ rev }) => ({ _id: id, _rev: rev, _deleted: true })),
      );
    }
    const taken = await backup();
    expect(entryOf(taken).parts).toEqual([]);
    expect(taken.bytes).toBeLessThan(20_000);
    expect(await restore(taken.path)).toEqual(await leaves(database));
  });

  test("a damaged file is detected by the next backup, which is a full one and reports it", async () => {
    const before = await backup();
    const path = join(before.path, entryOf(before).file);
    const bytes = readFileSync(path);
    bytes[bytes.length >> 1]! ^= 1;
    writeFileSync(path, bytes);
    const taken = await backup();
    expect(taken.damaged).toEqual([path]);
    expect(entryOf(taken).parts).toEqual([]);
    expect(await restore(taken.path)).toEqual(await leaves(database));
    expect((await backup()).damaged).toEqual([]);
  });

  test("a backup of an earlier version restores and is not used as a base", async () => {
    const taken = await backup();
    const { vaults, ...manifest } = taken.manifest;
    const old = vaults.map(
      ({ parts: _parts, size: _size, instance: _instance, ...entry }) => entry,
    );
    rmSync(join(taken.path, MANIFEST_NAME));
    writeManifest(taken.path, {
      ...manifest,
      format: 1,
      kind: "notes",
      vaults: old,
      files: taken.manifest.files.map(({ name, bytes, sha256 }) => ({
        name,
        bytes,
        sha256,
      })),
    });
    expect(await restore(taken.path)).toEqual(await leaves(database));
    expect(entryOf(await backup()).parts).toEqual([]);
  });

  test("a database recreated under the same name contains nothing of the previous one", async () => {
    await backup();
    await database.drop();
    await database.create();
    await database.write(noteDocuments("new.md", "new", 1));
    const taken = await backup();
    expect(entryOf(taken)).toMatchObject({ documents: 2, parts: [] });
    expect(await restore(taken.path)).toEqual(await leaves(database));
    const names = readdirSync(taken.path);
    expect(names.filter((name) => name.startsWith("vault-1"))).toHaveLength(1);
    expect(statSync(join(taken.path, names[0]!)).nlink).toBe(1);
  });
});

test("a part is merged unless it is twice as large as what is written, and all are when half of the bytes is no longer live", () => {
  const parts = [2_000_000, 3_000_000, 40_000_000].map((size, index) => ({
    file: `${index}.gz`,
    size,
  }));
  expect(partsToMerge(parts, 100, 45_000_000)).toBe(0);
  expect(partsToMerge(parts, 1_500_000, 45_000_000)).toBe(2);
  expect(partsToMerge(parts, 20_000_000, 45_000_000)).toBe(3);
  expect(partsToMerge(parts, 100, 22_000_000)).toBe(3);
  expect(partsToMerge([], 100, 0)).toBe(0);
  expect(partsToMerge([{ file: "a.gz", size: 900_000 }], 0, 900_000)).toBe(1);
});

/** Text that does not compress. */
function noise(length: number): string {
  let text = "";
  let state = length;
  while (text.length < length) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    text += state.toString(36);
  }
  return text + Math.random();
}
