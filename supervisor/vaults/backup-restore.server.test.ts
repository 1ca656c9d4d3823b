import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  serversUnderTest,
  type ServerUnderTest,
} from "../../test/contract/server-under-test.ts";
import { ask } from "../../test/contract/start-notes.ts";
import {
  noteDocuments,
  openNotesTestbed,
  writeNotes,
  type NotesTestbed,
} from "../../test/supervisor/notes-testbed.ts";
import { MINUTE_MS } from "../../core/duration.ts";
import { listBackups } from "../backup/manifest.ts";
import type { Context } from "../context.ts";
import { closedRules } from "./access-rules.ts";
import { backupNotes } from "./backup.ts";
import type { Couch } from "./couch.ts";
import { isEmbedded, Database, vaultNames } from "./database.ts";
import { MILESTONE_ID, SEED_ID } from "./livesync.ts";
import { vaultChoices } from "./plugin-settings.ts";
import { drillRestore } from "./restore-drill.ts";
import {
  countAll,
  dropUnfinished,
  restoreNotes,
  restoreVault,
} from "./restore.ts";
import { openEscrow } from "./seed-escrow.ts";
import { createMutex } from "../../core/mutex.ts";
import { VaultMaintenance } from "./vault-maintenance.ts";

const VAULT = "vault-kept";
const seed = { type: "sync-parameters", protocolVersion: 2, pbkdf2salt: "s" };
const milestone = { type: "milestoneinfo", locked: false };

/** Every leaf with its body and history, sorted. */
async function allLeaves(database: Database): Promise<readonly unknown[]> {
  const { results } = await database.changes({
    since: "0",
    limit: 100_000,
    allLeaves: true,
  });
  const wanted = results.flatMap(({ id, changes }) =>
    changes.map(({ rev }) => ({ id, rev })),
  );
  const documents = await database.revisions(wanted);
  return documents
    .map((document) => [document._id, document._rev, document] as const)
    .toSorted((a, b) => (`${a[0]} ${a[1]}` < `${b[0]} ${b[1]}` ? -1 : 1));
}

/** Notes, edits, a conflict, a deleted leaf, a deleted document and strange ids. */
async function fill(couch: Couch): Promise<void> {
  const database = new Database(couch, VAULT);
  await writeNotes(couch, VAULT, 300);
  const edited = await database.document("note 1.md");
  await database.put("note 1.md", { ...edited, mtime: 2 });
  for (const rev of ["2-aa", "2-bb"]) {
    await database.write(
      [
        {
          _id: "conflicted.md",
          _rev: `${rev}${"0".repeat(30)}`,
          _revisions: {
            start: 2,
            ids: [`${rev.slice(2)}${"0".repeat(30)}`, "c".repeat(32)],
          },
          type: "plain",
          rev,
        },
      ],
      { keepRevisions: true },
    );
  }
  await database.write([
    {
      _id: "conflicted.md",
      _rev: `2-aa${"0".repeat(30)}`,
      _deleted: true,
    },
  ]);
  const gone = await database.document("note 2.md");
  await database.write([
    { _id: "note 2.md", _rev: gone?._rev, _deleted: true },
    { _id: "Ünïcode ☃/+&?.md", type: "plain", data: "🔥\u0000 \u2028" },
    ...noteDocuments("large.bin", "x".repeat(6_000_000), 1),
  ]);
  await database.put(SEED_ID, seed);
  await database.put(MILESTONE_ID, milestone);
}

const quiet = {
  signal: new AbortController().signal,
  progress: () => {},
};

const backup = (testbed: NotesTestbed, more: Partial<typeof quiet> = {}) =>
  backupNotes({
    couch: testbed.couch,
    escrow: testbed.escrow,
    directory: testbed.backups,
    now: testbed.now,
    ...quiet,
    ...more,
  });

const restore = (
  testbed: NotesTestbed,
  path: string,
  more: Partial<Parameters<typeof restoreNotes>[0]> = {},
) => restoreNotes({ ...testbed, backup: path, ...quiet, ...more });

describe.each(serversUnderTest())("on $name", (under) => {
  let testbed: NotesTestbed;
  let member: { readonly name: string; readonly password: string };
  let vaultPassphrase: string | null;
  beforeAll(async () => {
    testbed = await openNotesTestbed(under);
    const made = await testbed.provisioning.add({
      vault: VAULT,
      choices: vaultChoices.parse({}),
    });
    member = { name: made.user, password: made.password };
    vaultPassphrase = made.vaultPassphrase;
    await fill(testbed.couch);
    await testbed.inspector.inspectAll();
  });
  afterAll(() => testbed.close());

  test("a backup restores into an empty server to the same leaves, and devices keep their passwords", async () => {
    const database = new Database(testbed.couch, VAULT);
    const before = await allLeaves(database);
    const { path, manifest } = await backup(testbed);
    expect(manifest.vaults).toEqual([
      {
        name: VAULT,
        file: "vault-1.jsonl.gz",
        documents: 604,
        leaves: 605,
        missing: [],
        parts: [],
        size: expect.any(Number),
        instance: expect.any(String),
      },
    ]);
    await testbed.provisioning.remove(VAULT);
    expect((await ask(`${testbed.server.url}/`, { user: member })).status).toBe(
      401,
    );

    await restore(testbed, path);
    expect(await allLeaves(database)).toEqual(before);
    expect(await database.document(SEED_ID)).toMatchObject(seed);
    expect(await database.document(MILESTONE_ID)).toMatchObject(milestone);
    expect(
      (await ask(`${testbed.server.url}/${VAULT}`, { user: member })).status,
    ).toBe(200);
    await testbed.inspector.inspectAll();
    expect([...testbed.raised.keys()]).toEqual([]);
    expect(testbed.state.vault(VAULT).member).toBe(VAULT);

    // The credentials of the removed vault are valid again.
    const again = await testbed.provisioning.setupUri({ vault: VAULT });
    expect(again).toMatchObject({ password: member.password, vaultPassphrase });

    // Backups contain no credentials; on another machine, new ones can be created.
    rmSync(testbed.files.pathOf(VAULT));
    await expect(
      testbed.provisioning.setupUri({ vault: VAULT }),
    ).rejects.toThrow(`\`hearth notes rotate ${VAULT}\` to create new ones`);
    const made = await testbed.provisioning.rotate({ vault: VAULT });
    expect(made.vaultPassphrase).toBeNull();
  });

  test.each([
    ["", { choices: vaultChoices.parse({}) }],
    [" without encryption", { choices: vaultChoices.parse({ e2ee: false }) }],
  ])(
    "a password of a vault%s that was replaced after a backup stays revoked when it is restored, and devices keep the new one",
    async (_kind, options) => {
      const vault = "vault-rotated";
      const made = await testbed.provisioning.add({ vault, ...options });
      const { path } = await backup(testbed);
      const { password } = await testbed.provisioning.rotate({ vault });
      await testbed.provisioning.remove(vault);
      // The second time, it continues an interrupted restore.
      for (const _time of ["first", "second"]) {
        await restore(testbed, path, { vault });
        const statusWith = async (each: string) => {
          const user = { name: vault, password: each };
          return (await ask(`${testbed.server.url}/${vault}`, { user })).status;
        };
        expect(await statusWith(password)).toBe(200);
        expect(await statusWith(made.password)).toBe(401);
        const again = await testbed.provisioning.setupUri({ vault });
        const { vaultPassphrase: passphrase } = made;
        expect(again).toMatchObject({ password, vaultPassphrase: passphrase });
      }
      await testbed.provisioning.remove(vault);
    },
  );

  test("a copy keeps its credentials and passphrase when the vault it was restored from is removed, and a later restore of that vault keeps a password revoked", async () => {
    const [vault, copy] = ["vault-original", "vault-original-before"];
    const { provisioning } = testbed;
    const made = await provisioning.add({ vault });
    const { path } = await backup(testbed);
    await restore(testbed, path, { vault, as: copy });
    await provisioning.remove(vault);
    const { vaultPassphrase, password } = made;
    const kept = await provisioning.setupUri({ vault: copy });
    expect(kept).toMatchObject({ user: vault, password, vaultPassphrase });
    expect(testbed.files.read(copy)?.connection).toMatch(
      /\/vault-original-before$/,
    );
    const rotated = await provisioning.rotate({ vault: copy });
    await restore(testbed, path, { vault });
    const statusWith = async (each: string) => {
      const user = { name: vault, password: each };
      return (await ask(`${testbed.server.url}/${vault}`, { user })).status;
    };
    expect(await statusWith(rotated.password)).toBe(200);
    expect(await statusWith(password)).toBe(401);
    for (const each of [vault, copy]) {
      const again = await provisioning.setupUri({ vault: each });
      expect(again.password).toBe(rotated.password);
      expect(again.vaultPassphrase).toBe(vaultPassphrase);
      await provisioning.remove(each);
    }
  });

  test("large chunks after small notes are read in small parts", async () => {
    const database = new Database(testbed.couch, "vault-large");
    await database.create();
    // In the feed, all notes precede the chunks.
    await writeNotes(testbed.couch, "vault-large", 120);
    for (let index = 0; index < 20; index += 1) {
      await database.write([
        { _id: `h:${index}`, type: "leaf", data: "x".repeat(2_000_000) },
      ]);
    }
    let longest = 0;
    const couch: Couch = {
      ...testbed.couch,
      ask: async (...request) => {
        const answer = await testbed.couch.ask(...request);
        longest = Math.max(longest, JSON.stringify(answer).length);
        return answer;
      },
    };
    const { manifest } = await backup({ ...testbed, couch });
    await database.drop();
    expect(longest).toBeGreaterThan(2_000_000);
    expect(longest).toBeLessThan(32_000_000);
    expect(
      manifest.vaults.find(({ name }) => name === "vault-large"),
    ).toMatchObject({ leaves: 260, missing: [] });
  });

  test("a backup restores without the versions that the store did not return", async () => {
    const damaged = "conflicted.md";
    const couch: Couch = {
      ...testbed.couch,
      ask: async (...request) => {
        const answer = await testbed.couch.ask(...request);
        if (!request[1].includes("_bulk_get")) {
          return answer;
        }
        const { results } = answer as { results: { id: string }[] };
        return {
          results: results.map((each) =>
            each.id === damaged ? { ...each, docs: [{ error: {} }] } : each,
          ),
        };
      },
    };
    // Without an earlier backup that has them.
    const backups = join(testbed.backups, "..", "damaged");
    const { path, manifest } = await backup({ ...testbed, couch, backups });
    expect(manifest.vaults).toMatchObject([
      { name: VAULT, documents: 604, leaves: 603, missing: [damaged] },
    ]);
    await restore(testbed, path, { vault: VAULT, as: "vault-damaged" });
    const restored = new Database(testbed.couch, "vault-damaged");
    expect(await allLeaves(restored)).toHaveLength(603);
    await testbed.provisioning.remove("vault-damaged");
  });

  test("design documents of a CouchDB are left out by the embedded store, and are no reason to fail", async () => {
    const renamed = (value: unknown, from: string, to: string): unknown =>
      JSON.parse(
        JSON.stringify(value).replaceAll(
          JSON.stringify(from),
          JSON.stringify(to),
        ),
      );
    const names = ["note 3.md", "_design/index"] as const;
    const couch: Couch = {
      ...testbed.couch,
      ask: async (method, path, { body, ...options } = {}) =>
        renamed(
          await testbed.couch.ask(method, path, {
            ...options,
            ...(body === undefined
              ? {}
              : { body: renamed(body, names[1], names[0]) }),
          }),
          ...names,
        ),
    };
    const backups = join(testbed.backups, "..", "design");
    const { path } = await backup({ ...testbed, couch, backups });
    const [restored] = await restore(testbed, path, { as: "vault-design" });
    const copy = new Database(testbed.couch, "vault-design");
    const leftOut = (await isEmbedded(testbed.couch)) ? 1 : 0;
    expect(restored).toMatchObject({ documents: 604 - leftOut, leftOut });
    expect(await allLeaves(copy)).toHaveLength(605 - leftOut);
    await drillRestore({
      ...testbed,
      backup: path,
      scratch: "design_drill_",
      ...quiet,
    });
    await testbed.provisioning.remove("vault-design");
  });

  test("a restore never overwrites but can create another vault", async () => {
    const { path } = await backup(testbed);
    await expect(restore(testbed, path)).rejects.toThrow(
      `restore to another name with --as ${VAULT}-restored`,
    );
    await restore(testbed, path, { vault: VAULT, as: "vault-copy" });
    expect(await allLeaves(new Database(testbed.couch, "vault-copy"))).toEqual(
      await allLeaves(new Database(testbed.couch, VAULT)),
    );
    await expect(
      restore(testbed, path, { vault: "vault-other" }),
    ).rejects.toThrow(`has no vault "vault-other"; it has ${VAULT}.`);
    // Both share one user: neither a rotation nor a removal may lock out the other.
    const made = await testbed.provisioning.rotate({ vault: "vault-copy" });
    expect(testbed.files.read(VAULT)?.password).toBe(made.password);
    await testbed.provisioning.remove("vault-copy");
    const answer = await ask(`${testbed.server.url}/${VAULT}`, {
      user: { name: made.user, password: made.password },
    });
    expect(answer.status).toBe(200);
  });

  test("an interrupted restore of several vaults is continued by the next one", async () => {
    const other = "vault-first";
    const choices = vaultChoices.parse({});
    await testbed.provisioning.add({ vault: other, choices });
    const first = new Database(testbed.couch, other);
    await first.write([{ _id: "a.md", type: "plain", data: "a" }]);
    const { path } = await backup(testbed);
    for (const vault of [other, VAULT]) {
      await testbed.provisioning.remove(vault);
    }
    const stopped = restore(testbed, path, {
      progress: (text) => {
        if (text === `vault ${VAULT}`) {
          throw new Error("stopped");
        }
      },
    });
    await expect(stopped).rejects.toThrow("stopped");
    await first.write([{ _id: "since.md", type: "plain", data: "since" }]);

    expect(await restore(testbed, path)).toMatchObject([
      { vault: other, already: true },
      { vault: VAULT, already: false },
    ]);
    expect(await allLeaves(first)).toHaveLength(2);
    expect(
      await countAll(new Database(testbed.couch, VAULT), quiet.signal),
    ).toEqual({
      documents: 604,
      leaves: 605,
    });
    const { path: later } = await backup(testbed);
    await expect(restore(testbed, later)).rejects.toThrow("already exists");
    await testbed.provisioning.remove(other);
  });

  test("changes by devices since the start of the restore are kept, and devices keep access", async () => {
    const { path, manifest } = await backup(testbed);
    const target = "vault-written";
    const made = await testbed.provisioning.add({
      vault: target,
      choices: vaultChoices.parse({}),
    });
    const database = new Database(testbed.couch, target);
    await database.write(noteDocuments("mine.md", "just written", 1));
    const before = await allLeaves(database);
    const [entry] = manifest.vaults;
    await expect(
      restoreVault({
        ...testbed,
        ...quiet,
        backup: path,
        entry: entry!,
        target,
      }),
    ).rejects.toThrow("a restore never overwrites");
    expect(await allLeaves(database)).toEqual(before);
    expect(await dropUnfinished(testbed.couch, new Set())).toEqual([]);
    const user = { name: made.user, password: made.password };
    const answer = await ask(`${testbed.server.url}/${target}`, { user });
    expect(answer.status).toBe(200);
    await testbed.provisioning.remove(target);
  });

  test("a device cannot mark its vault as a leftover of a restore", async () => {
    const target = "vault-marked";
    const made = await testbed.provisioning.add({
      vault: target,
      choices: vaultChoices.parse({}),
    });
    const user = { name: made.user, password: made.password };
    const url = `${testbed.server.url}/${target}`;
    const json = { hearth_restoring: true, backup: "x" };
    for (const path of ["_local/hearth_restoring", "_security"]) {
      await ask(`${url}/${path}`, { method: "PUT", json, user });
    }
    expect(await dropUnfinished(testbed.couch, new Set())).toEqual([]);
    expect((await ask(url, { user })).status).toBe(200);
    await testbed.provisioning.remove(target);
  });

  test("a backup of a vault whose access is blocked contains its accepted seed, and devices read what is restored", async () => {
    const [vault, copy] = ["vault-blocked", "vault-blocked-before"];
    const made = await testbed.provisioning.add({ vault });
    const database = new Database(testbed.couch, vault);
    for (const salt of ["accepted", "replaced"]) {
      await database.put(SEED_ID, { ...seed, pbkdf2salt: salt });
      await testbed.inspector.inspectAll();
    }
    expect(testbed.raised.has(`notes-seed:${vault}`)).toBe(true);
    const { path } = await backup(testbed);
    await restore(testbed, path, { vault, as: copy });
    const { user: name, password } = await testbed.provisioning.setupUri({
      vault: copy,
    });
    expect(password).toBe(made.password);
    const answer = await ask(`${testbed.server.url}/${copy}/${SEED_ID}`, {
      user: { name, password },
    });
    expect(await answer.json()).toMatchObject({ pbkdf2salt: "accepted" });
    await testbed.provisioning.remove(copy);
    await testbed.provisioning.remove(vault);
  });

  test.each([
    ["lost", (path: string) => rmSync(path)],
    ["damaged", (path: string) => writeFileSync(path, "{")],
  ])(
    "a backup of a blocked vault whose copy of the seed is %s contains the seed of an earlier one",
    async (state, spoil) => {
      const vault = `vault-blocked-${state}`;
      const made = await testbed.provisioning.add({ vault });
      const database = new Database(testbed.couch, vault);
      await database.put(SEED_ID, { ...seed, pbkdf2salt: "accepted" });
      await testbed.inspector.inspectAll();
      await backup(testbed);
      await database.put(SEED_ID, { ...seed, pbkdf2salt: "replaced" });
      await testbed.inspector.inspectAll();
      const file = testbed.escrow.pathOf(vault);
      spoil(file);
      const late = await backup(testbed);
      // As after months, when the backups from before have expired.
      for (const name of listBackups(testbed.backups)) {
        if (name !== late.name) {
          rmSync(join(testbed.backups, name), { recursive: true });
        }
      }
      testbed.pass(MINUTE_MS);
      const { path } = await backup(testbed);
      rmSync(file, { force: true });
      const { stays } = await testbed.provisioning.remove(vault);
      expect(stays[0]).toContain(`the newest is ${path} with 0 documents`);
      await restore(testbed, path, { vault });
      const answer = await ask(`${testbed.server.url}/${vault}/${SEED_ID}`, {
        user: { name: made.user, password: made.password },
      });
      expect(await answer.json()).toMatchObject({ pbkdf2salt: "accepted" });
      await testbed.provisioning.remove(vault);
    },
  );

  test("a backup of an earlier release, taken while access was blocked, gives the vault's user access again", async () => {
    const vault = "vault-blocked-earlier";
    const made = await testbed.provisioning.add({ vault });
    const database = new Database(testbed.couch, vault);
    await database.put(SEED_ID, seed);
    await testbed.inspector.inspectAll();
    await database.put(SEED_ID, { ...seed, pbkdf2salt: "replaced" });
    await database.secure(closedRules);
    const { path } = await backup({
      ...testbed,
      escrow: openEscrow(join(testbed.directory, "no-escrow")),
    });
    const user = { name: made.user, password: made.password };
    const read = async (name: string) =>
      (await ask(`${testbed.server.url}/${name}/${SEED_ID}`, { user })).status;
    expect(await read(vault)).toBe(403);

    const copy = `${vault}-copy`;
    await restore(testbed, path, { vault, as: copy });
    expect(await read(copy)).toBe(200);
    expect(await new Database(testbed.couch, copy).document(SEED_ID)).toEqual(
      expect.objectContaining(seed),
    );
    await testbed.provisioning.remove(copy);
    await testbed.provisioning.remove(vault);
    await restore(testbed, path, { vault });
    expect(await read(vault)).toBe(200);
    expect(testbed.state.vault(vault).member).toBe(made.user);
    await testbed.provisioning.remove(vault);
  });

  test("a vault that is being restored is not a leftover, and prevents a backup", async () => {
    const { path } = await backup(testbed);
    const dropped: string[] = [];
    let checks: Promise<unknown> = Promise.resolve();
    let early: unknown;
    await restore(testbed, path, {
      vault: VAULT,
      as: "vault-under-way",
      progress: (text) => {
        if (text === "vault vault-under-way") {
          early ??= backup(testbed).catch((error: Error) => error.message);
        }
        checks = checks.then(async () => {
          dropped.push(...(await dropUnfinished(testbed.couch, testbed.busy)));
        });
      },
    });
    await checks;
    expect(await early).toBe(
      'no backup was created, as vault "vault-under-way" is being restored: run `hearth notes backup` once it is complete.',
    );
    expect(dropped).toEqual([]);
    expect(await vaultNames(testbed.couch)).toContain("vault-under-way");
    await testbed.provisioning.remove("vault-under-way");
  });

  test("the drill restores, compares, and leaves nothing behind", async () => {
    const { path } = await backup(testbed);
    const [drilled] = await drillRestore({
      ...testbed,
      ...quiet,
      backup: path,
    });
    expect(drilled).toMatchObject({
      vault: VAULT,
      documents: 604,
      leaves: 605,
    });
    expect(drilled?.compared).toBeGreaterThan(40);
    expect(await testbed.couch.ask("GET", "/_all_dbs")).not.toContainEqual(
      expect.stringContaining("drill"),
    );
  });

  test("a damaged backup is rejected before anything is changed", async () => {
    const { path } = await backup(testbed);
    const file = join(path, "vault-1.jsonl.gz");
    const bytes = readFileSync(file);
    bytes[bytes.length >> 1]! ^= 1;
    writeFileSync(file, bytes);
    await expect(
      restore(testbed, path, { vault: VAULT, as: "vault-broken" }),
    ).rejects.toThrow("checksum differs");
    await expect(
      drillRestore({ ...testbed, ...quiet, backup: path }),
    ).rejects.toThrow("checksum differs");
    expect(await vaultNames(testbed.couch)).not.toContain("vault-broken");
  });

  test("a damaged file of one vault does not prevent a restore of the others", async () => {
    const other = "vault-other";
    const choices = vaultChoices.parse({});
    await testbed.provisioning.add({ vault: other, choices });
    const { path, manifest } = await backup(testbed);
    const damaged = manifest.vaults.find(({ name }) => name === other)!.file;
    truncateSync(join(path, damaged), 100);
    for (const vault of [other, VAULT]) {
      await testbed.provisioning.remove(vault);
    }
    await expect(restore(testbed, path)).rejects.toThrow(
      /^vault "vault-other" cannot be restored\.\n.* has 100 bytes instead of .*\nRestore the other vaults one by one/,
    );
    expect(await vaultNames(testbed.couch)).toEqual([]);
    expect(await restore(testbed, path, { vault: VAULT })).toMatchObject([
      { vault: VAULT, documents: 604 },
    ]);
  });

  test("a drill that would fill the disk is not started", async () => {
    const { path } = await backup(testbed);
    const asked: string[] = [];
    const couch: Couch = {
      ...testbed.couch,
      ask: (method, url, options) => {
        asked.push(`${method} ${url}`);
        return testbed.couch.ask(method, url, options);
      },
    };
    const drill = (freeBytes: number) =>
      drillRestore({
        ...testbed,
        ...quiet,
        couch,
        backup: path,
        freeBytes: () => freeBytes,
      });
    await expect(drill(10_000)).rejects.toThrow(
      /^the drill restores vault .* of free disk space, and 10 kB are available: free some space\.$/,
    );
    expect(asked.filter((each) => each.startsWith("PUT"))).toEqual([]);
    expect((await drill(1e8)).length).toBeGreaterThan(0);
  });

  test("a damaged copy of the seed is reported before anything is restored", async () => {
    const { path } = await backup(testbed);
    const copy = testbed.escrow.pathOf("vault-unsure");
    writeFileSync(copy, "{");
    await expect(
      restore(testbed, path, { vault: VAULT, as: "vault-unsure" }),
    ).rejects.toThrow(`${copy} is damaged`);
    rmSync(copy);
    expect(await vaultNames(testbed.couch)).not.toContain("vault-unsure");
  });

  test("a backup needs no room for what it shares with the last one", async () => {
    const { path } = await backup(testbed);
    const large = join(path, "large");
    writeFileSync(large, "");
    truncateSync(large, 8e12);
    const next = await backup(testbed);
    expect(next.bytes).toBeGreaterThan(0);
    rmSync(large);
  });

  test("a stopped backup leaves nothing behind", async () => {
    const before = readdirSync(testbed.backups);
    const stop = new AbortController();
    await expect(
      backup(testbed, {
        signal: stop.signal,
        progress: () => stop.abort(new Error("stopped")),
      }),
    ).rejects.toThrow();
    expect(readdirSync(testbed.backups)).toEqual(before);
  });

  test("concurrent writes do not break it", async () => {
    const database = new Database(testbed.couch, VAULT);
    let written = 0;
    const { path } = await backup(testbed, {
      progress: () => {
        if (written < 3) {
          void database.write(noteDocuments(`late ${written}.md`, "late", 1));
        }
        written += 1;
      },
    });
    const [drilled] = await drillRestore({
      ...testbed,
      ...quiet,
      backup: path,
    });
    expect(drilled?.documents).toBeGreaterThanOrEqual(604);
  });
});

const [embedded] = serversUnderTest() as [ServerUnderTest];

describe("a supervisor that is killed", () => {
  let testbed: NotesTestbed;
  beforeAll(async () => {
    testbed = await openNotesTestbed(embedded);
    await testbed.provisioning.add({
      vault: VAULT,
      choices: vaultChoices.parse({}),
    });
    await fill(testbed.couch);
  });
  afterAll(() => testbed.close());

  /** Starts the operation in another process and kills it halfway. */
  async function killed(
    work: "backup" | "restore",
    path: string,
  ): Promise<void> {
    const program = join(
      import.meta.dirname,
      "../../test/supervisor/notes-worker.ts",
    );
    const child = spawn(
      process.execPath,
      [program, work, testbed.server.url, testbed.directory, path],
      {
        env: { NOTES_ADMIN_PASSWORD: testbed.server.admin.password },
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    const ended = once(child, "exit");
    await Promise.race([once(child.stdout, "data"), ended]);
    child.kill("SIGKILL");
    await ended;
    expect(child.signalCode).toBe("SIGKILL");
  }

  test("during a backup leaves no partial one: the next one removes its files", async () => {
    await killed("backup", testbed.backups);
    expect(readdirSync(testbed.backups)).toEqual([
      expect.stringMatching(/^\.making-/),
    ]);
    const { name, path } = await backup(testbed);
    expect(readdirSync(testbed.backups)).toEqual([name]);
    await drillRestore({ ...testbed, ...quiet, backup: path });
  });

  test("during a restore leaves no partial vault: the next start drops it", async () => {
    const { path } = await backup(testbed);
    await killed("restore", path);
    const half = new Database(testbed.couch, "vault-half");
    expect((await half.info())?.doc_count).toBeGreaterThan(0);
    expect((await half.security()).members.roles).toEqual(["_admin"]);
    expect(await dropUnfinished(testbed.couch, testbed.busy)).toEqual([
      "vault-half",
    ]);
    expect(await half.info()).toBeUndefined();
    await restore(testbed, path, { vault: VAULT, as: "vault-half" });
    expect(await dropUnfinished(testbed.couch, testbed.busy)).toEqual([]);
    expect(await allLeaves(half)).toEqual(
      await allLeaves(new Database(testbed.couch, VAULT)),
    );
    await testbed.provisioning.remove("vault-half");
  });

  test("during a restore does not prevent the next one, which starts over", async () => {
    const { path } = await backup(testbed);
    await killed("restore", path);
    await restore(testbed, path, { vault: VAULT, as: "vault-half" });
    expect(await allLeaves(new Database(testbed.couch, "vault-half"))).toEqual(
      await allLeaves(new Database(testbed.couch, VAULT)),
    );
    await testbed.provisioning.remove("vault-half");
  });

  test("a store that ended during a restore has no partial vault soon after it has started again", async () => {
    const notices: string[] = [];
    const inspected = Promise.withResolvers<unknown>();
    const service = { pid: 1, state: "running", since: 0 };
    const context = {
      runtime: () => ({ inspect: () => service }),
      alarms: testbed.alarms,
      config: { notes: { first_vault: "off" } },
      onNotice: (sentence: string) => notices.push(sentence),
      showDevices: inspected.resolve,
      need: () => {},
    } as unknown as Context;
    const maintenance = new VaultMaintenance(context, {
      ...testbed,
      turns: createMutex(),
    });
    maintenance.start();
    try {
      const { path } = await backup(testbed);
      await inspected.promise;
      await killed("restore", path);
      service.pid = 2;
      await expect
        .poll(() => vaultNames(testbed.couch))
        .not.toContain("vault-half");
      await expect
        .poll(() => notices)
        .toEqual([expect.stringMatching(/^the restore of vault vault-half/)]);
    } finally {
      await maintenance.stop();
    }
  });
});
