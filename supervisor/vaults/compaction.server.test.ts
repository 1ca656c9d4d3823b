import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../core/duration.ts";
import { serversUnderTest } from "../../test/contract/server-under-test.ts";
import {
  openNotesTestbed,
  type NotesTestbed,
} from "../../test/supervisor/notes-testbed.ts";
import { compactVault, type CompactionOptions } from "./compaction.ts";
import { Database } from "./database.ts";
import { vaultChoices } from "./plugin-settings.ts";

const MEGABYTE = 1_000_000;

describe.each(serversUnderTest())("on $name", (under) => {
  let testbed: NotesTestbed;
  const vault = "vault-compact";
  beforeAll(async () => {
    testbed = await openNotesTestbed(under);
    await testbed.provisioning.add({
      vault,
      choices: vaultChoices.parse({}),
    });
    await supersede();
  });
  afterAll(() => testbed.close());

  /** Creates some megabytes of superseded bodies. */
  async function supersede(): Promise<void> {
    const database = new Database(testbed.couch, vault);
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
      database: new Database(testbed.couch, vault),
      state: testbed.state,
      limits: {
        minBytes: MEGABYTE,
        minPercent: 20,
        maxConflicts: 1,
        restFor: DAY_MS,
      },
      freeBytes: () => 1000 * MEGABYTE,
      onDemand: false,
      force: false,
      now: testbed.now,
      signal: new AbortController().signal,
      ...more,
    });

  test("a large database with much reclaimable space is reported", async () => {
    await new Database(testbed.couch, "vault-small").create();
    await testbed.inspector.inspectAll();
    expect(testbed.large).toEqual([vault]);
  });

  test("with too little reclaimable space or free disk space, a vault is not compacted", async () => {
    const limits = {
      minBytes: 64 * MEGABYTE,
      minPercent: 20,
      maxConflicts: 1,
      restFor: 1,
    };
    expect(await compact({ limits })).toMatchObject({
      status: "skipped",
      why: expect.stringContaining("can be reclaimed") as string,
    });
    const { space } = testbed.state.vault(vault);
    testbed.state.change(vault, { space: null });
    expect(await compact({ freeBytes: () => 1000 })).toMatchObject({
      status: "skipped",
      why: expect.stringContaining("of free disk space") as string,
    });
    testbed.state.change(vault, { space });
  });

  test("too many open conflicts prevent compaction unless it is forced", async () => {
    const database = new Database(testbed.couch, vault);
    for (const id of ["one", "two"]) {
      for (const rev of ["1-aa", "1-bb"]) {
        await database.write(
          [{ _id: id, _rev: `${rev}${"0".repeat(30)}`, rev }],
          { keepRevisions: true },
        );
      }
    }
    expect(await compact()).toMatchObject({
      status: "skipped",
      why: expect.stringContaining("more than 1 open conflicts") as string,
    });
    // The embedded store, which measures its space, needs no additional space.
    const inPlace = testbed.state.vault(vault).space !== null;
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
    const later = testbed.again();
    expect(await compact({ ...allowed, state: later.state })).toMatchObject({
      status: "skipped",
    });
    const done = await compact({ ...allowed, onDemand: true });
    if (done.status === "skipped") {
      throw new Error(done.why);
    }
    expect(done.beforeBytes - done.afterBytes).toBeGreaterThan(4 * MEGABYTE);
    testbed.pass(25 * HOUR_MS);
    await supersede();
    expect(await compact(allowed)).toMatchObject({ status: "done" });
  });

  test("a missing vault is reported", async () => {
    const database = new Database(testbed.couch, "vault-nowhere");
    await expect(compact({ database })).rejects.toThrow(
      'vault "vault-nowhere" not found',
    );
  });
});
