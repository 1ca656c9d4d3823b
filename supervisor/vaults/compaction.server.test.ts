import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serversUnderTest } from "../../test/contract/server-under-test.ts";
import {
  openNotesStand,
  type NotesStand,
} from "../../test/supervisor/notes-stand.ts";
import { compactVault, type CompactionOptions } from "./compaction.ts";
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

  /** Creates some megabytes of superseded bodies. */
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

  const compact = (more: Partial<CompactionOptions> = {}) =>
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

  test("a large database with much reclaimable space is reported", async () => {
    await openDatabase(stand.couch, "vault-small").create();
    await stand.keeper.look();
    expect(stand.large).toEqual([vault]);
  });

  test("with too little reclaimable space or free disk space, a vault is not compacted", async () => {
    const limits = {
      leastBytes: 64 * MEGABYTE,
      leastPercent: 20,
      mostConflicts: 1,
      restFor: 1,
    };
    expect(await compact({ limits })).toMatchObject({
      status: "skipped",
      why: expect.stringContaining("can be reclaimed") as string,
    });
    const { space } = stand.state.vault(vault);
    stand.state.change(vault, { space: null });
    expect(await compact({ freeBytes: () => 1000 })).toMatchObject({
      status: "skipped",
      why: expect.stringContaining("of free disk space") as string,
    });
    stand.state.change(vault, { space });
  });

  test("too many open conflicts prevent compaction unless it is forced", async () => {
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
    // The embedded store, which measures its space, needs no additional space.
    const inPlace = stand.state.vault(vault).space !== null;
    expect(
      await compact({
        force: true,
        ...(inPlace ? { freeBytes: () => 1000 } : {}),
      }),
    ).toMatchObject({ status: "done" });
    // Leaves are preserved.
    expect(await database.leaves("one")).toHaveLength(2);
  });

  test("a vault is compacted at most daily, except on request", async () => {
    await supersede();
    const allowed = { force: true };
    expect(await compact(allowed)).toMatchObject({
      status: "skipped",
      why: expect.stringContaining("last compacted at") as string,
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

  test("a missing vault is reported", async () => {
    const database = openDatabase(stand.couch, "vault-nowhere");
    await expect(compact({ database })).rejects.toThrow(
      'there is no vault "vault-nowhere"',
    );
  });
});
