import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serversUnderTest } from "../../test/contract/server-under-test.ts";
import {
  openNotesStand,
  type NotesStand,
} from "../../test/supervisor/notes-stand.ts";
import { compactVault, type CompactionAsk } from "./compaction.ts";
import { openDatabase } from "./database.ts";
import { vaultChoices } from "./plugin-settings.ts";

const MEGABYTE = 1_000_000;

describe.each(serversUnderTest())("on $name", (under) => {
  let stand: NotesStand;
  const vault = "vault-compact";
  beforeAll(async () => {
    stand = await openNotesStand(under);
    await stand.provisioning.add({
      vault,
      choices: vaultChoices.parse({}),
    });
    await supersede();
  });
  afterAll(() => stand.close());

  /** Leaves some megabytes of old bodies behind. */
  async function supersede(): Promise<void> {
    const database = openDatabase(stand.couch, vault);
    for (let round = 0; round < 4; round += 1) {
      const known = await database.document("large");
      await database.put("large", {
        ...(known === undefined ? {} : { _rev: known._rev }),
        data: String(round).repeat(2 * MEGABYTE),
      });
    }
  }

  const compact = (more: Partial<CompactionAsk> = {}) =>
    compactVault({
      database: openDatabase(stand.couch, vault),
      state: stand.state,
      limits: {
        leastBytes: MEGABYTE,
        leastPercent: 20,
        mostConflicts: 1,
        restFor: 24 * 3_600_000,
      },
      freeBytes: () => 1000 * MEGABYTE,
      asked: false,
      force: false,
      now: stand.now,
      signal: new AbortController().signal,
      ...more,
    });

  test("a large database with much to be had back is reported by a look", async () => {
    await openDatabase(stand.couch, "vault-small").create();
    await stand.keeper.look();
    expect(stand.large).toEqual([vault]);
  });

  test("too little to be had back, too little room: it is left as it is", async () => {
    const limits = {
      leastBytes: 64 * MEGABYTE,
      leastPercent: 20,
      mostConflicts: 1,
      restFor: 1,
    };
    expect(await compact({ limits })).toMatchObject({
      status: "skipped",
      why: expect.stringContaining("could be had back") as string,
    });
    const { space } = stand.state.vault(vault);
    stand.state.change(vault, { space: null });
    expect(await compact({ freeBytes: () => 1000 })).toMatchObject({
      status: "skipped",
      why: expect.stringContaining("of free disk") as string,
    });
    stand.state.change(vault, { space });
  });

  test("more open conflicts than are allowed hold it back, unless it is forced", async () => {
    const database = openDatabase(stand.couch, vault);
    for (const id of ["one", "two"]) {
      for (const rev of ["1-aa", "1-bb"]) {
        await database.write(
          [{ _id: id, _rev: `${rev}${"0".repeat(30)}`, rev }],
          { asTheyAre: true },
        );
      }
    }
    expect(await compact()).toMatchObject({
      status: "skipped",
      why: expect.stringContaining("more than 1 open conflicts") as string,
    });
    // Hearth's own store, which measures its space, needs no room beside the file.
    const inPlace = stand.state.vault(vault).space !== null;
    expect(
      await compact({
        force: true,
        ...(inPlace ? { freeBytes: () => 1000 } : {}),
      }),
    ).toMatchObject({ status: "done" });
    // No leaf is lost by it.
    expect(await database.leaves("one")).toHaveLength(2);
  });

  test("not within a day of the last, whatever there is; but when a person asks", async () => {
    await supersede();
    const allowed = { force: true };
    expect(await compact(allowed)).toMatchObject({
      status: "skipped",
      why: expect.stringContaining("it was compacted at") as string,
    });
    const later = stand.again();
    expect(await compact({ ...allowed, state: later.state })).toMatchObject({
      status: "skipped",
    });
    const done = await compact({ ...allowed, asked: true });
    if (done.status === "skipped") {
      throw new Error(done.why);
    }
    expect(done.beforeBytes - done.afterBytes).toBeGreaterThan(4 * MEGABYTE);
    stand.pass(25 * 3_600_000);
    await supersede();
    expect(await compact(allowed)).toMatchObject({ status: "done" });
  });

  test("a vault that is not there is said", async () => {
    const database = openDatabase(stand.couch, "vault-nowhere");
    await expect(compact({ database })).rejects.toThrow(
      'there is no vault "vault-nowhere"',
    );
  });
});
