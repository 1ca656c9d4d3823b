import { statSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serversUnderTest } from "../../test/contract/server-under-test.ts";
import { ask } from "../../test/contract/start-notes.ts";
import {
  noteDocuments,
  openNotesStand,
  writeNotes,
  type NotesStand,
} from "../../test/supervisor/notes-stand.ts";
import { closedRules, memberRules } from "./access-rules.ts";
import { openDatabase } from "./database.ts";
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

describe.each(serversUnderTest())("on $name", (under) => {
  let stand: NotesStand;
  beforeAll(async () => {
    stand = await openNotesStand(under);
  });
  afterAll(() => stand.close());

  /** A vault with a few encrypted notes and a seed that was looked at. */
  async function vaultWithSeed(vault: string, salt = "first") {
    const made = await stand.provisioning.add({ vault, choices });
    const database = openDatabase(stand.couch, vault);
    await database.put(SEED_ID, seed(salt));
    await database.write([
      { _id: "h:+chunk", type: "leaf", data: "%=…", e_: true },
    ]);
    await stand.keeper.look();
    const statusOfMember = async () =>
      (
        await ask(`${stand.server.url}/${vault}`, {
          user: { name: made.user, password: made.password },
        })
      ).status;
    return { database, statusOfMember };
  }

  const saltIn = async (vault: string) =>
    (await openDatabase(stand.couch, vault).document(SEED_ID))?.["pbkdf2salt"];

  /** `instance_start_time` has whole seconds. */
  async function makeAnew(vault: string): Promise<void> {
    const database = openDatabase(stand.couch, vault);
    await wait(1100);
    await database.drop();
    await database.create();
  }

  test("a seed is copied when it is first seen, in a file that only its owner can read", async () => {
    const { database } = await vaultWithSeed("vault-copy");
    const kept = stand.escrow.read("vault-copy");
    expect(kept).toMatchObject({
      accepted: "first",
      closed: null,
      versions: [{ seed: seed("first") }],
    });
    expect(kept.instance).toBe((await database.info())?.instance_start_time);
    expect(statSync(stand.escrow.pathOf("vault-copy")).mode & 0o777).toBe(
      0o600,
    );
  });

  test("an empty seed, as a device writes it first, is not taken for one", async () => {
    const vault = "vault-empty-seed";
    await stand.provisioning.add({ vault, choices });
    await openDatabase(stand.couch, vault).put(SEED_ID, seed(""));
    await stand.keeper.look();
    expect(stand.escrow.read(vault).versions).toEqual([]);
    expect([...stand.raised.keys()]).toEqual([]);
  });

  test("a lost seed is put back at once, and somebody is told", async () => {
    const vault = "vault-lost";
    const { database, statusOfMember } = await vaultWithSeed(vault);
    const { _rev } = (await database.document(SEED_ID)) ?? {};
    await stand.couch.ask("DELETE", `/${vault}/${SEED_ID}?rev=${_rev}`);
    await stand.keeper.look();
    expect(await saltIn(vault)).toBe("first");
    expect(await statusOfMember()).toBe(200);
    expect(stand.raised.get(`notes-seed-lost:${vault}`)?.text).toContain(
      "was gone and was put back at once",
    );
  });

  test("a second seed closes the vault until the old one is put back", async () => {
    const vault = "vault-changed";
    const { database, statusOfMember } = await vaultWithSeed(vault);
    await database.put(SEED_ID, seed("second"));
    await stand.keeper.look();
    expect(await database.security()).toEqual(closedRules);
    expect(await statusOfMember()).toBe(403);
    expect(stand.raised.get(`notes-seed:${vault}`)).toMatchObject({
      level: "down",
      command: `hearth notes restore-seed ${vault}`,
    });
    // Neither a restart nor somebody who opens it changes that.
    const later = stand.again();
    await database.secure(memberRules(vault));
    await later.keeper.look();
    expect(await database.security()).toEqual(closedRules);
    expect(later.raised.has(`notes-seed:${vault}`)).toBe(true);
    // Not even the seed's return by another hand: a person looks first.
    await database.put(SEED_ID, seed("first"));
    await stand.keeper.look();
    expect(await statusOfMember()).toBe(403);

    await database.put(SEED_ID, seed("second"));
    expect(await stand.keeper.restoreSeed(vault, false)).toEqual({
      vault,
      did: "restored",
    });
    expect(await saltIn(vault)).toBe("first");
    expect(await statusOfMember()).toBe(200);
    await stand.keeper.look();
    expect(stand.raised.has(`notes-seed:${vault}`)).toBe(false);
    expect(stand.escrow.read(vault).versions).toHaveLength(2);
  });

  test("or until the new one is accepted; the old one stays in the file", async () => {
    const vault = "vault-accepted";
    const { database, statusOfMember } = await vaultWithSeed(vault);
    await database.put(SEED_ID, seed("second"));
    await stand.keeper.look();
    await stand.keeper.restoreSeed(vault, true);
    await stand.keeper.look();
    expect(await saltIn(vault)).toBe("second");
    expect(await statusOfMember()).toBe(200);
    expect(stand.escrow.read(vault)).toMatchObject({
      accepted: "second",
      versions: [{ seed: seed("first") }, { seed: seed("second") }],
    });
  });

  test("a database made anew gets its rules back, and its new seed is accepted", async () => {
    const vault = "vault-anew";
    const { database, statusOfMember } = await vaultWithSeed(vault);
    await makeAnew(vault);
    await database.put(SEED_ID, seed("second"));
    expect(await statusOfMember()).toBe(403);
    await stand.keeper.look();
    expect(await statusOfMember()).toBe(200);
    expect(await saltIn(vault)).toBe("second");
    expect(stand.raised.has(`notes-anew:${vault}`)).toBe(true);
    expect(stand.raised.has(`notes-seed:${vault}`)).toBe(false);
    expect(stand.escrow.read(vault)).toMatchObject({
      accepted: "second",
      versions: [{ seed: seed("first") }, { seed: seed("second") }],
    });
  });

  test("it gets its rules back as soon as it was made, without waiting for a look, and takes the seed that follows", async () => {
    const vault = "vault-at-once";
    const { database, statusOfMember } = await vaultWithSeed(vault);
    if (!under.embedded) {
      await stand.couch.ask("PUT", "/_global_changes");
    }
    const stop = new AbortController();
    const repaired = Promise.withResolvers<void>();
    const following = followDatabases(
      stand.couch,
      {
        created: async (created) => {
          await stand.keeper.lookAt(created);
          if (stand.raised.has(`notes-anew:${vault}`)) {
            repaired.resolve();
          }
        },
        quiet: openQuietVaults(stand.now),
      },
      stop.signal,
    );
    await makeAnew(vault);
    await repaired.promise;
    expect(await statusOfMember()).toBe(200);
    await database.put(SEED_ID, seed("second"));
    await stand.keeper.look();
    expect(await saltIn(vault)).toBe("second");
    expect(stand.raised.has(`notes-seed:${vault}`)).toBe(false);
    stop.abort();
    await following;
  });

  test.runIf(under.embedded)(
    "a vault is not read again until the feed reports a change, of a local document or of its rules, too",
    async () => {
      const vault = "vault-quiet";
      const { database } = await vaultWithSeed(vault);
      const quiet = openQuietVaults(stand.now);
      const stop = new AbortController();
      const following = followDatabases(
        stand.couch,
        { created: async () => {}, quiet },
        stop.signal,
      );
      const read = (): boolean => {
        const isRead = !quiet.take().has(vault);
        quiet.read([vault]);
        return isRead;
      };
      await expect.poll(read, { timeout: 60_000 }).toBe(false);
      await stand.keeper.look(new Set([vault]));
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
      // The feed's end makes nothing quiet, and a quiet vault is left out of the look.
      expect(read()).toBe(true);
      await stand.keeper.look(new Set([vault]));
      expect(await database.security()).toEqual(closedRules);
      await stand.keeper.look();
      expect(await database.security()).toEqual(memberRules(vault));
    },
  );

  test("a database that is none of ours is left alone when it is created", async () => {
    const database = openDatabase(stand.couch, "vault-of-others");
    await database.create();
    const before = await database.security();
    await stand.keeper.lookAt("vault-of-others");
    expect(await database.security()).toEqual(before);
    expect(stand.state.known()).not.toContain("vault-of-others");
    await database.drop();
  });

  test("a database filled from another, where replication lost the seed, gets the old one", async () => {
    const vault = "vault-replicated";
    const { database } = await vaultWithSeed(vault);
    await makeAnew(vault);
    await database.write([
      { _id: "h:+chunk", type: "leaf", data: "%=…", e_: true },
    ]);
    await stand.keeper.look();
    expect(await saltIn(vault)).toBe("first");
    await stand.keeper.look();
    expect(stand.escrow.read(vault).closed).toBeNull();
  });

  test("rules that were changed from outside are put back", async () => {
    const vault = "vault-drift";
    const { database, statusOfMember } = await vaultWithSeed(vault);
    await database.secure({
      admins: { names: [], roles: [] },
      members: { names: [], roles: [] },
    });
    await stand.keeper.look();
    expect(await database.security()).toEqual(memberRules(vault));
    expect(await statusOfMember()).toBe(200);
    expect(stand.raised.has(`notes-rules:${vault}`)).toBe(true);
  });

  test("a database that was not made by hearth is left as it is", async () => {
    const vault = "vault-foreign";
    const database = openDatabase(stand.couch, vault);
    await database.create();
    const before = await database.security();
    await stand.keeper.look();
    expect(await database.security()).toEqual(before);
    const locked = `notes-locked:${vault}`;
    stand.alarms.raise({
      fingerprint: locked,
      level: "warning",
      subject: vault,
      text: "locked",
      command: "hearth notes devices",
    });
    await database.drop();
    await stand.keeper.look();
    expect(stand.raised.has(`notes-gone:${vault}`)).toBe(false);
    // Nobody is told of what is no more.
    expect(stand.raised.has(locked)).toBe(false);
  });

  test("a vault whose database is gone is told at the second look, until it is back", async () => {
    const vault = "vault-gone";
    const { database } = await vaultWithSeed(vault);
    await database.drop();
    await stand.keeper.look();
    expect(stand.raised.has(`notes-gone:${vault}`)).toBe(false);
    await stand.keeper.look();
    expect(stand.raised.get(`notes-gone:${vault}`)).toMatchObject({
      level: "down",
    });
    await wait(1100);
    await database.create();
    await stand.keeper.look();
    expect(stand.raised.has(`notes-gone:${vault}`)).toBe(false);
  });

  describe("deletions", () => {
    const vault = "vault-deleting";
    let database: ReturnType<typeof openDatabase>;
    const alarm = () => stand.raised.get(`notes-deletions:${vault}`);

    /** As the plugin deletes: the document stays, with `deleted: true`. */
    async function remove(from: number, to: number): Promise<void> {
      const ids = Array.from(
        { length: to - from },
        (_each, index) => `note ${from + index}.md`,
      );
      const documents = await Promise.all(ids.map((id) => database.document(id)));
      await database.write(
        documents.map((document) => ({ ...document, deleted: true })),
      );
    }

    beforeAll(async () => {
      await stand.provisioning.add({ vault, choices });
      database = openDatabase(stand.couch, vault);
      await writeNotes(stand.couch, vault, 40);
      await stand.keeper.look();
    });

    test("a few are nobody's business", async () => {
      await remove(0, 4);
      await stand.keeper.look();
      expect(alarm()).toBeUndefined();
    });

    test("a folder that is renamed is no loss", async () => {
      await remove(4, 14);
      await database.write(
        Array.from({ length: 10 }, (_each, index) =>
          noteDocuments(`moved/${index}.md`, `text of ${index}`, 1),
        ).flat(),
      );
      await stand.keeper.look();
      expect(alarm()).toBeUndefined();
    });

    test("many at once are told, with what is left, also after a restart", async () => {
      await remove(14, 24);
      await stand.keeper.look();
      expect(stand.raised.get(`notes-look:${vault}`)).toBeUndefined();
      expect((await database.info())?.doc_del_count).toBe(0);
      expect(alarm()).toMatchObject({
        level: "warning",
        text: expect.stringMatching(
          /^24 notes .*\(and 10 made\); 26 are left/,
        ) as string,
      });
      const later = stand.again();
      await later.keeper.look();
      expect(later.raised.has(`notes-deletions:${vault}`)).toBe(true);
    });

    test("and told no more a day later", async () => {
      stand.pass(25 * 3_600_000);
      await stand.keeper.look();
      expect(alarm()).toBeUndefined();
    });
  });
});
