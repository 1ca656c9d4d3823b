import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import { remote } from "../../test/contract/devices.ts";
import { serversUnderTest } from "../../test/contract/server-under-test.ts";
import {
  newVaultDevice,
  type VaultDevice,
} from "../../test/contract/vault-device.ts";
import {
  openNotesTestbed,
  type NotesTestbed,
} from "../../test/supervisor/notes-testbed.ts";
import { readTexts } from "./conflict-texts.ts";
import { countConflicts, findConflicts, resolveConflict } from "./conflicts.ts";
import { Database, vaultNames } from "./database.ts";
import { openPendingConflicts } from "./pending-conflicts.ts";
import { vaultChoices } from "./plugin-settings.ts";

describe.each(serversUnderTest())("on $name", (under) => {
  let testbed: NotesTestbed;
  let clock = 1_800_000_000_000;
  beforeAll(async () => {
    testbed = await openNotesTestbed(under);
  });
  afterAll(() => testbed.close());

  /** Two devices that edited the same note offline; the second wrote later. */
  async function conflicted(vault: string) {
    const made = await testbed.provisioning.add({
      vault,
      choices: vaultChoices.parse({}),
    });
    const server = remote(testbed.server.url, vault, {
      name: made.user,
      password: made.password,
    });
    const devices = [1, 2].map(() => newVaultDevice(() => (clock += 1000)));
    const [left, right] = devices as [VaultDevice, VaultDevice];
    await left.write("note.md", "base");
    await left.sync(server);
    await right.sync(server);
    await left.write("note.md", "left");
    await right.write("note.md", "right");
    for (const device of [left, right, left]) {
      await device.sync(server);
    }
    const files = async () => {
      for (const device of [left, right]) {
        await device.sync(server);
      }
      return Promise.all([left, right].map((device) => device.files(server)));
    };
    const conflictsLeft = async () =>
      Promise.all([left, right].map((device) => device.conflicted()));
    const database = new Database(testbed.couch, vault);
    return { database, files, conflictsLeft };
  }

  const report = (database: Database) =>
    findConflicts(database, testbed.state, testbed.now(), 100);

  test("a conflict of two devices is reported with its versions and its age", async () => {
    const { database } = await conflicted("vault-report");
    const first = await report(database);
    expect(first).toMatchObject({ vault: "vault-report", more: false });
    expect(first.conflicts).toHaveLength(1);
    const [conflict] = first.conflicts;
    expect(conflict).toMatchObject({ path: "note.md", device: null });
    expect(conflict?.versions.map(({ wins }) => wins)).toEqual([true, false]);
    expect(conflict?.versions.every(({ mtime }) => mtime !== null)).toBe(true);
    testbed.pass(HOUR_MS);
    const later = await report(database);
    expect(later.conflicts[0]?.firstSeen).toBe(conflict?.firstSeen);
    expect(await countConflicts(database, 10)).toBe(1);
  });

  test("a vault with a conflict needs attention until it is resolved", async () => {
    const { database } = await conflicted("vault-pending");
    const search = openPendingConflicts(
      testbed.couch,
      testbed.state,
      testbed.now,
    );
    const pending = async () =>
      search(await vaultNames(testbed.couch), new Set());
    const ofVault = async () =>
      (await pending()).filter(({ name }) => name === "vault vault-pending");
    const found = await ofVault();
    expect(found).toMatchObject([
      {
        level: "warning",
        text: "vault vault-pending has 1 note in conflict",
        command: "hearth notes conflicts vault-pending",
      },
    ]);
    testbed.pass(60_000);
    expect(await ofVault()).toEqual(found);
    await resolveConflict(database, "note.md", "newer");
    expect(await ofVault()).toEqual([]);
  });

  test("the texts of its versions are read as far as possible", async () => {
    const { database } = await conflicted("vault-texts");
    const [conflict] = (await report(database)).conflicts;
    const revs = conflict?.versions.map(({ rev }) => rev) ?? [];
    const document = conflict?.document ?? "";
    const texts = await readTexts(database, document, revs);
    expect(texts.map((each) => each.kind === "text" && each.text)).toEqual(
      expect.arrayContaining(["left", "right"]),
    );
    const plain = { type: "plain", path: "x.md", children: ["h:1"] };
    await database.write([
      { _id: "h:1", type: "leaf", data: "hidden", e_: true },
      { _id: "gone", ...plain, children: ["h:nowhere"] },
      { _id: "deleted", ...plain, deleted: true },
      { _id: "picture", ...plain, type: "newnote" },
      { _id: "long", ...plain, size: 1e9 },
      { _id: "hidden", ...plain },
      { _id: "veiled", ...plain, path: "/\\:%=abc", children: [] },
      { _id: "within", ...plain, eden: { "h:1": { data: "in it" } } },
      { _id: "strange", ...plain, children: "none" },
    ]);
    for (const [id, expected] of [
      ["gone", { kind: "incomplete" }],
      ["deleted", { kind: "deleted" }],
      ["picture", { kind: "binary" }],
      ["long", { kind: "large" }],
      ["hidden", { kind: "encrypted" }],
      ["veiled", { kind: "encrypted" }],
      ["within", { kind: "text", text: "in it" }],
      ["strange", { kind: "binary" }],
    ] as const) {
      const rev = (await database.document(id))?._rev ?? "";
      const [read] = await readTexts(database, id, [rev]);
      expect(read, id).toEqual({ rev, ...expected });
    }
  });

  test("the newer version stays, on every device", async () => {
    const { database, files, conflictsLeft } = await conflicted("vault-newer");
    const resolved = await resolveConflict(database, "note.md", "newer");
    expect(resolved.removed).toHaveLength(1);
    expect(await files()).toEqual([
      { "note.md": "right" },
      { "note.md": "right" },
    ]);
    expect(await conflictsLeft()).toEqual([[], []]);
    expect((await report(database)).conflicts).toEqual([]);
  });

  test("the named version stays, also where devices showed the other", async () => {
    const { database, files, conflictsLeft } = await conflicted("vault-named");
    const [shown] = await files();
    const { conflicts } = await report(database);
    const [conflict] = conflicts;
    const loser = conflict?.versions.find(({ wins }) => !wins);
    const { kept } = await resolveConflict(database, conflict?.document ?? "", {
      rev: loser?.rev ?? "",
    });
    expect(kept).toBe(loser?.rev);
    const [one, other] = await files();
    expect(one).toEqual(other);
    expect(one).not.toEqual(shown);
    expect(await conflictsLeft()).toEqual([[], []]);
    expect((await database.document(conflict?.document ?? ""))?._rev).toBe(
      kept,
    );
    const removed = (await database.leaves(conflict?.document ?? "")).find(
      ({ _deleted }) => _deleted === true,
    );
    expect(removed).toMatchObject({ type: "plain", children: [] });
  });

  test("both versions stay as two notes, on every device", async () => {
    const { database, files } = await conflicted("vault-both");
    await resolveConflict(database, "note.md", "newer");
    // As a device writes an unencrypted note: its id is the path in lower case.
    const note = { _id: "plans/trip.md", type: "plain", path: "Plans/Trip.md" };
    const times = { mtime: 1, ctime: 1, size: 3, eden: {} };
    await database.write(
      [
        { _id: "h:sea", type: "leaf", data: "sea" },
        { _id: "h:hill", type: "leaf", data: "hill" },
      ].map((chunk, at) => ({ ...chunk, _rev: `1-${String(at).repeat(32)}` })),
      { keepRevisions: true },
    );
    await database.write(
      ["h:sea", "h:hill"].map((chunk, at) => ({
        ...note,
        ...times,
        children: [chunk],
        _rev: `1-${"ab".charAt(at).repeat(32)}`,
      })),
      { keepRevisions: true },
    );
    const resolved = await resolveConflict(database, note.path, "both");
    expect(resolved).toEqual({
      document: note._id,
      kept: `1-${"b".repeat(32)}`,
      removed: [`1-${"a".repeat(32)}`],
      copies: ["Plans/Trip (conflict aaaaaa).md"],
    });
    expect(
      (await database.document("plans/trip (conflict aaaaaa).md"))?.["path"],
    ).toBe("Plans/Trip (conflict aaaaaa).md");
    for (const device of await files()) {
      expect(device).toMatchObject({
        "Plans/Trip.md": "hill",
        "Plans/Trip (conflict aaaaaa).md": "sea",
      });
    }
    expect((await report(database)).conflicts).toEqual([]);
  });

  test("a missing document, conflict or version and encrypted times are reported", async () => {
    const { database } = await conflicted("vault-refusals");
    await expect(
      resolveConflict(database, "other.md", "newer"),
    ).rejects.toThrow('has no document "other.md"');
    await expect(
      resolveConflict(database, "note.md", { rev: "9-abc" }),
    ).rejects.toThrow("has no version 9-abc; its versions are 2-");
    await database.write([
      { _id: "calm.md", type: "plain", path: "calm.md", mtime: 1 },
    ]);
    await expect(resolveConflict(database, "calm.md", "newer")).rejects.toThrow(
      "has no open conflict",
    );
    for (const rev of ["1-aa", "1-bb"]) {
      await database.write(
        [
          {
            _id: "f:secret",
            _rev: `${rev}${"0".repeat(30)}`,
            type: "plain",
            path: `/\\:%=${rev}`,
            mtime: 0,
          },
        ],
        { keepRevisions: true },
      );
    }
    await expect(
      resolveConflict(database, "f:secret", "newer"),
    ).rejects.toThrow("are encrypted");
    const { conflicts } = await report(database);
    expect(
      conflicts.find(({ document }) => document === "f:secret"),
    ).toMatchObject({
      path: null,
      versions: [{ mtime: null }, { mtime: null }],
    });
  });

  test("a document of one device is reported with the device", async () => {
    const database = new Database(testbed.couch, "vault-refusals");
    for (const rev of ["1-aa", "1-bb"]) {
      await database.write(
        [
          {
            _id: "ix:laptop/config/app.json.md",
            _rev: `${rev}${"0".repeat(30)}`,
            type: "plain",
            path: "ix:laptop/CONFIG/app.json.md",
            mtime: 5,
          },
        ],
        { keepRevisions: true },
      );
    }
    const { conflicts } = await report(database);
    expect(conflicts.map(({ device }) => device)).toContain("laptop");
    await expect(
      resolveConflict(database, "ix:laptop/config/app.json.md", "newer"),
    ).rejects.toThrow("were written at the same time");
  });
});
