import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  serversUnderTest,
  type ServerUnderTest,
} from "../../test/contract/server-under-test.ts";
import { ask } from "../../test/contract/start-notes.ts";
import {
  noteDocuments,
  openNotesStand,
  writeNotes,
  type NotesStand,
} from "../../test/supervisor/notes-stand.ts";
import { backupNotes } from "./backup.ts";
import type { Couch } from "./couch.ts";
import { openDatabase, vaultNames, type Database } from "./database.ts";
import { MILESTONE_ID, SEED_ID } from "./livesync.ts";
import { vaultChoices } from "./plugin-settings.ts";
import { drillRestore } from "./restore-drill.ts";
import { dropUnfinished, restoreNotes, restoreVault } from "./restore.ts";

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
  const database = openDatabase(couch, VAULT);
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
      { asTheyAre: true },
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

const backup = (stand: NotesStand, more: Partial<typeof quiet> = {}) =>
  backupNotes({
    couch: stand.couch,
    directory: stand.backups,
    now: stand.now,
    ...quiet,
    ...more,
  });

const restore = (
  stand: NotesStand,
  path: string,
  more: Partial<Parameters<typeof restoreNotes>[0]> = {},
) => restoreNotes({ ...stand, backup: path, ...quiet, ...more });

describe.each(serversUnderTest())("on $name", (under) => {
  let stand: NotesStand;
  let member: { readonly name: string; readonly password: string };
  beforeAll(async () => {
    stand = await openNotesStand(under);
    const made = await stand.provisioning.add({
      vault: VAULT,
      choices: vaultChoices.parse({}),
    });
    member = { name: made.user, password: made.password };
    await fill(stand.couch);
    await stand.keeper.look();
  });
  afterAll(() => stand.close());

  test("a backup restores into an empty server to the same leaves, and devices keep their passwords", async () => {
    const database = openDatabase(stand.couch, VAULT);
    const before = await allLeaves(database);
    const { path, manifest } = await backup(stand);
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
    await stand.provisioning.remove(VAULT);
    expect((await ask(`${stand.server.url}/`, { user: member })).status).toBe(
      401,
    );

    await restore(stand, path);
    expect(await allLeaves(database)).toEqual(before);
    expect(await database.document(SEED_ID)).toMatchObject(seed);
    expect(await database.document(MILESTONE_ID)).toMatchObject(milestone);
    expect(
      (await ask(`${stand.server.url}/${VAULT}`, { user: member })).status,
    ).toBe(200);
    await stand.keeper.look();
    expect([...stand.raised.keys()]).toEqual([]);
    expect(stand.state.vault(VAULT).member).toBe(VAULT);

    // Backups contain no credentials; new ones can be created.
    await expect(stand.provisioning.setupUri({ vault: VAULT })).rejects.toThrow(
      `\`hearth notes rotate ${VAULT}\` to create new ones`,
    );
    const made = await stand.provisioning.rotate({ vault: VAULT });
    expect(made.vaultPassphrase).toBeNull();
  });

  test("a restore never overwrites but can create another vault", async () => {
    const { path } = await backup(stand);
    await expect(restore(stand, path)).rejects.toThrow(
      `restore beside it with --as ${VAULT}-restored`,
    );
    await restore(stand, path, { vault: VAULT, as: "vault-beside" });
    expect(await allLeaves(openDatabase(stand.couch, "vault-beside"))).toEqual(
      await allLeaves(openDatabase(stand.couch, VAULT)),
    );
    await expect(
      restore(stand, path, { vault: "vault-other" }),
    ).rejects.toThrow(`has no vault "vault-other"; it has ${VAULT}.`);
    // Both share one user: neither a rotation nor a removal may lock out the other.
    const made = await stand.provisioning.rotate({ vault: "vault-beside" });
    expect(stand.files.read(VAULT)?.password).toBe(made.password);
    await stand.provisioning.remove("vault-beside");
    const answer = await ask(`${stand.server.url}/${VAULT}`, {
      user: { name: made.user, password: made.password },
    });
    expect(answer.status).toBe(200);
  });

  test("changes by devices since the start of the restore are kept, and devices keep access", async () => {
    const { path, manifest } = await backup(stand);
    const target = "vault-written";
    const made = await stand.provisioning.add({
      vault: target,
      choices: vaultChoices.parse({}),
    });
    const database = openDatabase(stand.couch, target);
    await database.write(noteDocuments("mine.md", "just written", 1));
    const before = await allLeaves(database);
    const [entry] = manifest.vaults;
    await expect(
      restoreVault({
        ...stand,
        ...quiet,
        backup: path,
        entry: entry!,
        target,
      }),
    ).rejects.toThrow("a restore never overwrites");
    expect(await allLeaves(database)).toEqual(before);
    expect(await dropUnfinished(stand.couch, new Set())).toEqual([]);
    const user = { name: made.user, password: made.password };
    const answer = await ask(`${stand.server.url}/${target}`, { user });
    expect(answer.status).toBe(200);
    await stand.provisioning.remove(target);
  });

  test("a vault that is being restored is not a leftover", async () => {
    const { path } = await backup(stand);
    const dropped: string[] = [];
    let looks = Promise.resolve();
    await restore(stand, path, {
      vault: VAULT,
      as: "vault-under-way",
      progress: () => {
        looks = looks.then(async () => {
          dropped.push(...(await dropUnfinished(stand.couch, stand.busy)));
        });
      },
    });
    await looks;
    expect(dropped).toEqual([]);
    expect(await vaultNames(stand.couch)).toContain("vault-under-way");
    await stand.provisioning.remove("vault-under-way");
  });

  test("the drill restores, compares, and leaves nothing behind", async () => {
    const { path } = await backup(stand);
    const [drilled] = await drillRestore({ ...stand, ...quiet, backup: path });
    expect(drilled).toMatchObject({
      vault: VAULT,
      documents: 604,
      leaves: 605,
    });
    expect(drilled?.compared).toBeGreaterThan(40);
    expect(await stand.couch.ask("GET", "/_all_dbs")).not.toContainEqual(
      expect.stringContaining("drill"),
    );
  });

  test("a damaged backup is rejected before anything is changed", async () => {
    const { path } = await backup(stand);
    const file = join(path, "vault-1.jsonl.gz");
    const bytes = readFileSync(file);
    bytes[bytes.length >> 1]! ^= 1;
    writeFileSync(file, bytes);
    await expect(
      restore(stand, path, { vault: VAULT, as: "vault-broken" }),
    ).rejects.toThrow("checksum differs");
    await expect(
      drillRestore({ ...stand, ...quiet, backup: path }),
    ).rejects.toThrow("checksum differs");
    expect(await vaultNames(stand.couch)).not.toContain("vault-broken");
  });

  test("a stopped backup leaves nothing behind", async () => {
    const before = readdirSync(stand.backups);
    const stop = new AbortController();
    await expect(
      backup(stand, {
        signal: stop.signal,
        progress: () => stop.abort(new Error("stopped")),
      }),
    ).rejects.toThrow();
    expect(readdirSync(stand.backups)).toEqual(before);
  });

  test("concurrent writes do not break it", async () => {
    const database = openDatabase(stand.couch, VAULT);
    let written = 0;
    const { path } = await backup(stand, {
      progress: () => {
        if (written < 3) {
          void database.write(noteDocuments(`late ${written}.md`, "late", 1));
        }
        written += 1;
      },
    });
    const [drilled] = await drillRestore({ ...stand, ...quiet, backup: path });
    expect(drilled?.documents).toBeGreaterThanOrEqual(604);
  });
});

const [embedded] = serversUnderTest() as [ServerUnderTest];

describe("a supervisor that is killed", () => {
  let stand: NotesStand;
  beforeAll(async () => {
    stand = await openNotesStand(embedded);
    await stand.provisioning.add({
      vault: VAULT,
      choices: vaultChoices.parse({}),
    });
    await fill(stand.couch);
  });
  afterAll(() => stand.close());

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
      [program, work, stand.server.url, stand.directory, path],
      {
        env: { NOTES_ADMIN_PASSWORD: stand.server.admin.password },
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
    await killed("backup", stand.backups);
    expect(readdirSync(stand.backups)).toEqual([
      expect.stringMatching(/^\.making-/),
    ]);
    const { name, path } = await backup(stand);
    expect(readdirSync(stand.backups)).toEqual([name]);
    await drillRestore({ ...stand, ...quiet, backup: path });
  });

  test("during a restore leaves no partial vault: the next start drops it", async () => {
    const { path } = await backup(stand);
    await killed("restore", path);
    const half = openDatabase(stand.couch, "vault-half");
    expect((await half.info())?.doc_count).toBeGreaterThan(0);
    expect((await half.security()).members.roles).toEqual(["_admin"]);
    expect(await dropUnfinished(stand.couch, stand.busy)).toEqual([
      "vault-half",
    ]);
    expect(await half.info()).toBeUndefined();
    await restore(stand, path, { vault: VAULT, as: "vault-half" });
    expect(await dropUnfinished(stand.couch, stand.busy)).toEqual([]);
    expect(await allLeaves(half)).toEqual(
      await allLeaves(openDatabase(stand.couch, VAULT)),
    );
  });
});
