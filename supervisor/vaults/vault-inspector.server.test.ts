import { rmSync, statSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import { serversUnderTest } from "../../test/contract/server-under-test.ts";
import { ask } from "../../test/contract/start-notes.ts";
import {
  noteDocuments,
  openNotesTestbed,
  writeNotes,
  type NotesTestbed,
} from "../../test/supervisor/notes-testbed.ts";
import { closedRules, memberRules } from "./access-rules.ts";
import { backupNotes } from "./backup.ts";
import { Database } from "./database.ts";
import { followDatabases } from "./database-updates.ts";
import { SEED_ID } from "./livesync.ts";
import { openQuietVaults } from "./quiet-vaults.ts";
import { vaultChoices } from "./plugin-settings.ts";

const choices = vaultChoices.parse({});
const seed = (salt: string) => ({
  type: "sync-parameters",
  protocolVersion: 2,
  pbkdf2salt: salt,
});

const backup = ({ couch, escrow, backups, now }: NotesTestbed) =>
  backupNotes({
    couch,
    escrow,
    directory: backups,
    now,
    signal: new AbortController().signal,
    progress: () => {},
  });

describe.each(serversUnderTest())("on $name", (under) => {
  let testbed: NotesTestbed;
  beforeAll(async () => {
    testbed = await openNotesTestbed(under);
  });
  afterAll(() => testbed.close());

  /** A vault with a few encrypted notes and a seed that was inspected. */
  async function vaultWithSeed(vault: string) {
    const made = await testbed.provisioning.add({ vault, choices });
    const database = new Database(testbed.couch, vault);
    await database.put(SEED_ID, seed("first"));
    await database.write([
      { _id: "h:+chunk", type: "leaf", data: "%=…", e_: true },
    ]);
    await testbed.inspector.inspectAll();
    const statusOfMember = async () =>
      (
        await ask(`${testbed.server.url}/${vault}`, {
          user: { name: made.user, password: made.password },
        })
      ).status;
    return { database, statusOfMember };
  }

  const saltIn = async (vault: string) =>
    (await new Database(testbed.couch, vault).document(SEED_ID))?.[
      "pbkdf2salt"
    ];

  /** `instance_start_time` has whole seconds. */
  async function makeAnew(vault: string): Promise<void> {
    const database = new Database(testbed.couch, vault);
    await sleep(1100);
    await database.drop();
    await database.create();
  }

  test("a seed is copied when first seen, to a file that only its owner can read", async () => {
    const { database } = await vaultWithSeed("vault-copy");
    const kept = testbed.escrow.read("vault-copy");
    expect(kept).toMatchObject({
      accepted: "first",
      closed: null,
      versions: [{ seed: seed("first") }],
    });
    expect(kept.instance).toBe((await database.info())?.instance_start_time);
    expect(statSync(testbed.escrow.pathOf("vault-copy")).mode & 0o777).toBe(
      0o600,
    );
  });

  test("an empty seed, which a device writes first, is ignored", async () => {
    const vault = "vault-empty-seed";
    await testbed.provisioning.add({ vault, choices });
    await new Database(testbed.couch, vault).put(SEED_ID, seed(""));
    await testbed.inspector.inspectAll();
    expect(testbed.escrow.read(vault).versions).toEqual([]);
    expect([...testbed.raised.keys()]).toEqual([]);
  });

  test("a lost seed is restored immediately, with an alarm", async () => {
    const vault = "vault-lost";
    const { database, statusOfMember } = await vaultWithSeed(vault);
    const { _rev } = (await database.document(SEED_ID)) ?? {};
    await testbed.couch.ask("DELETE", `/${vault}/${SEED_ID}?rev=${_rev}`);
    await testbed.inspector.inspectAll();
    expect(await saltIn(vault)).toBe("first");
    expect(await statusOfMember()).toBe(200);
    expect(testbed.raised.get(`notes-seed-lost:${vault}`)?.text).toContain(
      "was missing and was restored immediately",
    );
  });

  test("a second seed blocks access until the old one is restored", async () => {
    const vault = "vault-changed";
    const { database, statusOfMember } = await vaultWithSeed(vault);
    await database.put(SEED_ID, seed("second"));
    await testbed.inspector.inspectAll();
    expect(await database.security()).toEqual(closedRules);
    expect(await statusOfMember()).toBe(403);
    expect(testbed.raised.get(`notes-seed:${vault}`)).toMatchObject({
      level: "down",
      command: `hearth notes restore-seed ${vault}`,
    });
    // Neither a restart nor changed access rules reopen it.
    const later = testbed.again();
    await database.secure(memberRules(vault));
    await later.inspector.inspectAll();
    expect(await database.security()).toEqual(closedRules);
    expect(later.raised.has(`notes-seed:${vault}`)).toBe(true);
    // Nor does the seed itself if it returns: a person must decide.
    await database.put(SEED_ID, seed("first"));
    await testbed.inspector.inspectAll();
    expect(await statusOfMember()).toBe(403);

    await database.put(SEED_ID, seed("second"));
    expect(await testbed.inspector.restoreSeed(vault, false)).toEqual({
      vault,
      did: "restored",
    });
    expect(await saltIn(vault)).toBe("first");
    expect(await statusOfMember()).toBe(200);
    await testbed.inspector.inspectAll();
    expect(testbed.raised.has(`notes-seed:${vault}`)).toBe(false);
    expect(testbed.escrow.read(vault).versions).toHaveLength(2);
  });

  test("a second seed blocks access although the disk is full, and the rules return with the old seed", async () => {
    const vault = "vault-changed-full-disk";
    const { database, statusOfMember } = await vaultWithSeed(vault);
    await database.put(SEED_ID, seed("second"));
    const fullDisk = vi
      .spyOn(testbed.escrow, "write")
      .mockImplementation(() => {
        throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
      });
    await testbed.inspector.inspectAll();
    await testbed.inspector.inspectAll();
    fullDisk.mockRestore();
    expect(await statusOfMember()).toBe(403);

    await testbed.inspector.inspectAll();
    expect(testbed.escrow.read(vault).closed?.rules).toEqual(
      memberRules(vault),
    );
    await testbed.inspector.restoreSeed(vault, false);
    expect(await statusOfMember()).toBe(200);
  });

  test("a second seed blocks access on a full disk although no user is known, and the rules return with the old seed", async () => {
    const vault = "vault-foreign-full-disk";
    const database = new Database(testbed.couch, vault);
    await database.create();
    await database.secure(memberRules("somebody"));
    await database.put(SEED_ID, seed("first"));
    await testbed.inspector.inspectAll();
    await database.put(SEED_ID, seed("second"));
    const fullDisk = vi
      .spyOn(testbed.escrow, "write")
      .mockImplementation(() => {
        throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
      });
    await testbed.inspector.inspectAll();
    await testbed.again().inspector.inspectAll();
    fullDisk.mockRestore();
    expect(await database.security()).toEqual(closedRules);

    await testbed.inspector.inspectAll();
    expect(testbed.raised.has(`notes-seed:${vault}`)).toBe(true);
    await testbed.inspector.restoreSeed(vault, false);
    expect(await database.security()).toEqual(memberRules("somebody"));
    await database.drop();
  });

  test("the original seed is restored from a backup where the copy of a blocked vault was lost", async () => {
    const vault = "vault-changed-lost-copy";
    const { database, statusOfMember } = await vaultWithSeed(vault);
    await backup(testbed);
    await database.put(SEED_ID, seed("second"));
    await testbed.inspector.inspectAll();
    rmSync(testbed.escrow.pathOf(vault));
    // Contains the original seed, too.
    await backup(testbed);
    const later = testbed.again();
    await later.inspector.inspectAll();
    expect(await statusOfMember()).toBe(403);
    expect(later.raised.has(`notes-seed:${vault}`)).toBe(true);
    await later.inspector.restoreSeed(vault, false);
    expect(await saltIn(vault)).toBe("first");
    expect(await statusOfMember()).toBe(200);
    await later.inspector.inspectAll();
    expect(later.raised.has(`notes-seed:${vault}`)).toBe(false);
  });

  test("a seed that was replaced after the loss of its copy is noticed by the newest backup", async () => {
    const vault = "vault-lost-copy-changed";
    const { database, statusOfMember } = await vaultWithSeed(vault);
    await backup(testbed);
    rmSync(testbed.escrow.pathOf(vault));
    await database.put(SEED_ID, seed("second"));
    await testbed.inspector.inspectAll();
    expect(testbed.raised.has(`notes-seed:${vault}`)).toBe(true);
    expect(await statusOfMember()).toBe(403);
    expect(testbed.escrow.read(vault)).toMatchObject({
      accepted: "first",
      closed: { rules: memberRules(vault) },
      versions: [{ seed: seed("first") }, { seed: seed("second") }],
    });
  });

  test("a copy that was lost is created again, from a backup where the database has lost the seed as well", async () => {
    const vault = "vault-lost-both";
    const { database } = await vaultWithSeed(vault);
    await backup(testbed);
    const path = testbed.escrow.pathOf(vault);
    rmSync(path);
    await testbed.inspector.inspectAll();
    expect(testbed.escrow.read(vault).accepted).toBe("first");
    rmSync(path);
    const { _rev } = (await database.document(SEED_ID)) ?? {};
    await testbed.couch.ask("DELETE", `/${vault}/${SEED_ID}?rev=${_rev}`);
    await testbed.inspector.inspectAll();
    expect(await saltIn(vault)).toBe("first");
    expect(testbed.raised.has(`notes-seed-lost:${vault}`)).toBe(true);
    expect(testbed.escrow.read(vault).accepted).toBe("first");
  });

  test("an encrypted vault without its seed and without any copy of it raises an alarm until a seed is there", async () => {
    const vault = "vault-seed-missing";
    const database = new Database(testbed.couch, vault);
    await database.create();
    const alarm = () => testbed.raised.get(`notes-seed-missing:${vault}`);
    // The plugin's first encryption has no seed.
    await database.write([
      { _id: "h:+first", type: "leaf", data: "%abc", e_: true },
    ]);
    await testbed.inspector.inspectAll();
    expect(alarm()).toBeUndefined();
    const first = await database.document("h:+first");
    await database.write([{ ...first, data: "%=abc" }]);
    await testbed.inspector.inspectAll();
    expect(alarm()).toMatchObject({
      level: "down",
      text: expect.stringContaining("copy _local/") as string,
    });
    await expect(testbed.inspector.restoreSeed(vault, false)).rejects.toThrow(
      "no copy of a security seed",
    );
    await database.put(SEED_ID, seed("first"));
    await testbed.inspector.inspectAll();
    expect(alarm()).toBeUndefined();
    expect(testbed.escrow.read(vault).accepted).toBe("first");
    await database.drop();
  });

  test("a blocked vault without any copy of its seed stays blocked until a person decides", async () => {
    const vault = "vault-changed-no-copy";
    const { database, statusOfMember } = await vaultWithSeed(vault);
    await database.put(SEED_ID, seed("second"));
    await testbed.inspector.inspectAll();
    rmSync(testbed.escrow.pathOf(vault));
    const later = testbed.again();
    await later.inspector.inspectAll();
    // Nor do changed access rules reopen it.
    await database.secure(memberRules(vault));
    await later.inspector.inspectAll();
    expect(await statusOfMember()).toBe(403);
    expect(later.raised.has(`notes-seed:${vault}`)).toBe(true);
    await expect(later.inspector.restoreSeed(vault, false)).rejects.toThrow(
      "no copy of the original security seed",
    );
    await later.inspector.restoreSeed(vault, true);
    await later.inspector.inspectAll();
    expect(await statusOfMember()).toBe(200);
    expect(testbed.escrow.read(vault).accepted).toBe("second");
  });

  test("a second seed blocks access until it is accepted; the old one stays in the file", async () => {
    const vault = "vault-accepted";
    const { database, statusOfMember } = await vaultWithSeed(vault);
    await database.put(SEED_ID, seed("second"));
    await testbed.inspector.inspectAll();
    await testbed.inspector.restoreSeed(vault, true);
    await testbed.inspector.inspectAll();
    expect(await saltIn(vault)).toBe("second");
    expect(await statusOfMember()).toBe(200);
    expect(testbed.escrow.read(vault)).toMatchObject({
      accepted: "second",
      versions: [{ seed: seed("first") }, { seed: seed("second") }],
    });
  });

  test("a recreated database gets its rules back, and its new seed is accepted", async () => {
    const vault = "vault-recreated";
    const { database, statusOfMember } = await vaultWithSeed(vault);
    await makeAnew(vault);
    await database.put(SEED_ID, seed("second"));
    expect(await statusOfMember()).toBe(403);
    await testbed.inspector.inspectAll();
    expect(await statusOfMember()).toBe(200);
    expect(await saltIn(vault)).toBe("second");
    expect(testbed.raised.has(`notes-anew:${vault}`)).toBe(true);
    expect(testbed.raised.has(`notes-seed:${vault}`)).toBe(false);
    expect(testbed.escrow.read(vault)).toMatchObject({
      accepted: "second",
      versions: [{ seed: seed("first") }, { seed: seed("second") }],
    });
  });

  test("a recreated database gets its rules back without waiting for an inspection, and its later seed is accepted", async () => {
    const vault = "vault-at-once";
    const { database, statusOfMember } = await vaultWithSeed(vault);
    if (!under.embedded) {
      await testbed.couch.ask("PUT", "/_global_changes");
    }
    const stop = new AbortController();
    const repaired = Promise.withResolvers<void>();
    const following = followDatabases(
      testbed.couch,
      {
        created: async (created) => {
          await testbed.inspector.inspect(created);
          if (testbed.raised.has(`notes-anew:${vault}`)) {
            repaired.resolve();
          }
        },
        quiet: openQuietVaults(testbed.now),
      },
      stop.signal,
    );
    await makeAnew(vault);
    await repaired.promise;
    expect(await statusOfMember()).toBe(200);
    await database.put(SEED_ID, seed("second"));
    await testbed.inspector.inspectAll();
    expect(await saltIn(vault)).toBe("second");
    expect(testbed.raised.has(`notes-seed:${vault}`)).toBe(false);
    stop.abort();
    await following;
  });

  test.runIf(under.embedded)(
    "a vault is not read again until the feed reports a change, including local documents and rules",
    async () => {
      const vault = "vault-quiet";
      const { database } = await vaultWithSeed(vault);
      const quiet = openQuietVaults(testbed.now);
      const stop = new AbortController();
      const following = followDatabases(
        testbed.couch,
        { created: async () => {}, quiet },
        stop.signal,
      );
      const read = (): boolean => {
        const isRead = !quiet.take().has(vault);
        quiet.read([vault]);
        return isRead;
      };
      await expect.poll(read, { timeout: 60_000 }).toBe(false);
      await testbed.inspector.inspectAll(new Set([vault]));
      for (const change of [
        () => database.put("_local/other", {}),
        () => database.secure(closedRules),
        () => database.write([{ _id: "h:+more", type: "leaf" }]),
      ]) {
        await change();
        await expect.poll(read, { timeout: 60_000 }).toBe(true);
      }
      stop.abort();
      await following;
      // Without the feed no vault is quiet; quiet vaults are not inspected.
      expect(read()).toBe(true);
      await testbed.inspector.inspectAll(new Set([vault]));
      expect(await database.security()).toEqual(closedRules);
      await testbed.inspector.inspectAll();
      expect(await database.security()).toEqual(memberRules(vault));
    },
  );

  test("a new database that was not provisioned here is left unchanged", async () => {
    const database = new Database(testbed.couch, "vault-of-others");
    await database.create();
    const before = await database.security();
    await testbed.inspector.inspect("vault-of-others");
    expect(await database.security()).toEqual(before);
    expect(testbed.state.known()).not.toContain("vault-of-others");
    await database.drop();
  });

  test("a database whose seed was lost by replication gets the old one", async () => {
    const vault = "vault-replicated";
    const { database } = await vaultWithSeed(vault);
    await makeAnew(vault);
    await database.write([
      { _id: "h:+chunk", type: "leaf", data: "%=…", e_: true },
    ]);
    await testbed.inspector.inspectAll();
    expect(await saltIn(vault)).toBe("first");
    await testbed.inspector.inspectAll();
    expect(testbed.escrow.read(vault).closed).toBeNull();
  });

  test("rules that were changed from outside are restored", async () => {
    const vault = "vault-drift";
    const { database, statusOfMember } = await vaultWithSeed(vault);
    await database.secure({
      admins: { names: [], roles: [] },
      members: { names: [], roles: [] },
    });
    await testbed.inspector.inspectAll();
    expect(await database.security()).toEqual(memberRules(vault));
    expect(await statusOfMember()).toBe(200);
    expect(testbed.raised.has(`notes-rules:${vault}`)).toBe(true);
  });

  test("a database that was not created by Hearth is left unchanged", async () => {
    const vault = "vault-foreign";
    const database = new Database(testbed.couch, vault);
    await database.create();
    const before = await database.security();
    await testbed.inspector.inspectAll();
    expect(await database.security()).toEqual(before);
    const locked = `notes-locked:${vault}`;
    testbed.alarms.raise({
      fingerprint: locked,
      level: "warning",
      subject: vault,
      text: "locked",
      command: "hearth notes devices",
    });
    await database.drop();
    await testbed.inspector.inspectAll();
    expect(testbed.raised.has(`notes-gone:${vault}`)).toBe(false);
    // Alarms of a removed vault are cleared.
    expect(testbed.raised.has(locked)).toBe(false);
  });

  test("a missing database raises an alarm at the second inspection, until it exists again", async () => {
    const vault = "vault-gone";
    const { database } = await vaultWithSeed(vault);
    await database.drop();
    await testbed.inspector.inspectAll();
    expect(testbed.raised.has(`notes-gone:${vault}`)).toBe(false);
    await testbed.inspector.inspectAll();
    expect(testbed.raised.get(`notes-gone:${vault}`)).toMatchObject({
      level: "down",
    });
    await sleep(1100);
    await database.create();
    await testbed.inspector.inspectAll();
    expect(testbed.raised.has(`notes-gone:${vault}`)).toBe(false);
  });

  test("with a damaged copy of the seed, deletions are counted, and the alarm about a replaced seed stays", async () => {
    const vault = "vault-unsure";
    const { database } = await vaultWithSeed(vault);
    await database.write(
      Array.from({ length: 10 }, (_each, index) => ({
        _id: `note ${index}`,
        type: "plain",
      })),
    );
    const replaced = await database.document(SEED_ID);
    await database.put(SEED_ID, {
      ...seed("second"),
      _rev: replaced?._rev,
    });
    await testbed.inspector.inspectAll();
    testbed.pass(2 * HOUR_MS);
    writeFileSync(testbed.escrow.pathOf(vault), "{");
    await database.write(
      (await database.find({ selector: { type: "plain" } })).map((note) => ({
        ...note,
        deleted: true,
      })),
    );
    await testbed.inspector.inspectAll();
    expect([...testbed.raised.keys()]).toEqual(
      expect.arrayContaining([
        `notes-look:${vault}`,
        `notes-seed:${vault}`,
        `notes-deletions:${vault}`,
      ]),
    );
    await testbed.provisioning.remove(vault).catch(() => {});
    testbed.inspector.forget(vault);
    rmSync(testbed.escrow.pathOf(vault));
    await database.drop();
    testbed.state.forget(vault);
  });

  describe("deletions", () => {
    const vault = "vault-deleting";
    let database: Database;
    const alarm = () => testbed.raised.get(`notes-deletions:${vault}`);

    /** As the plugin deletes: the document stays, with `deleted: true`. */
    async function remove(from: number, to: number): Promise<void> {
      await mark(
        Array.from(
          { length: to - from },
          (_each, index) => `note ${from + index}.md`,
        ),
        true,
      );
    }

    async function mark(
      ids: readonly string[],
      deleted: boolean,
    ): Promise<void> {
      const documents = await Promise.all(
        ids.map((id) => database.document(id)),
      );
      await database.write(
        documents.map((document) => ({ ...document, deleted })),
      );
    }

    beforeAll(async () => {
      await testbed.provisioning.add({ vault, choices });
      database = new Database(testbed.couch, vault);
      await writeNotes(testbed.couch, vault, 40);
      await testbed.inspector.inspectAll();
    });

    test("a few raise no alarm", async () => {
      await remove(0, 4);
      await testbed.inspector.inspectAll();
      expect(alarm()).toBeUndefined();
    });

    test("renaming a folder raises no alarm", async () => {
      await remove(4, 14);
      await database.write(
        Array.from({ length: 10 }, (_each, index) =>
          noteDocuments(`moved/${index}.md`, `text of ${index}`, 1),
        ).flat(),
      );
      await testbed.inspector.inspectAll();
      expect(alarm()).toBeUndefined();
    });

    test("moving it back raises no alarm", async () => {
      const ten = Array.from({ length: 10 }, (_each, index) => index);
      await mark(
        ten.map((index) => `moved/${index}.md`),
        true,
      );
      await mark(
        ten.map((index) => `note ${4 + index}.md`),
        false,
      );
      await testbed.inspector.inspectAll();
      expect(alarm()).toBeUndefined();
    });

    test("many at once raise an alarm with the number of remaining notes, also after a restart", async () => {
      await remove(14, 24);
      await testbed.inspector.inspectAll();
      expect(testbed.raised.get(`notes-look:${vault}`)).toBeUndefined();
      expect((await database.info())?.doc_del_count).toBe(0);
      expect(alarm()).toMatchObject({
        level: "warning",
        text: expect.stringMatching(
          /^34 notes .*\(and 20 created\); 26 are left/,
        ) as string,
      });
      const later = testbed.again();
      await later.inspector.inspectAll();
      expect(later.raised.has(`notes-deletions:${vault}`)).toBe(true);
    });

    test("permanent deletions, as by other programs, raise the alarm, and those of notes that were deleted before do not", async () => {
      const other = "vault-tombstones";
      await testbed.provisioning.add({ vault: other, choices });
      const tombstones = new Database(testbed.couch, other);
      await writeNotes(testbed.couch, other, 40);
      await testbed.inspector.inspectAll();
      const raised = () => testbed.raised.get(`notes-deletions:${other}`);
      const find = async (selector: object) =>
        tombstones.find({
          selector: { type: "plain", ...selector },
          limit: 10,
        });
      // Unused chunks are deleted, too.
      const chunks = await tombstones.find({ selector: { type: "leaf" } });
      await tombstones.write(
        chunks.map(({ _id, _rev }) => ({ _id, _rev, _deleted: true })),
      );
      await testbed.inspector.inspectAll();
      expect(raised()).toBeUndefined();

      const notes = await find({});
      await tombstones.write(
        notes.map(({ _id, _rev }) => ({ _id, _rev, _deleted: true })),
      );
      await testbed.inspector.inspectAll();
      expect(raised()?.text).toMatch(/^10 notes .* 30 are left/);
      testbed.inspector.forget(other);

      await tombstones.write(
        (await find({})).map((note) => ({ ...note, deleted: true })),
      );
      await testbed.inspector.inspectAll();
      expect(raised()?.text).toMatch(/^20 notes .* 20 are left/);
      testbed.inspector.forget(other);
      testbed.pass(2 * HOUR_MS);
      await testbed.inspector.inspectAll();
      expect(raised()).toBeUndefined();
      // The plugin can be set to do so after some days.
      await tombstones.write(
        (await find({ deleted: true })).map((note) => ({
          ...note,
          _deleted: true,
        })),
      );
      await testbed.inspector.inspectAll();
      expect(raised()).toBeUndefined();
    });

    test("the alarm expires after a day", async () => {
      testbed.pass(25 * HOUR_MS);
      await testbed.inspector.inspectAll();
      expect(alarm()).toBeUndefined();
    });
  });
});
