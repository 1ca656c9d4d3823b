import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  admin,
  startNotes,
  type NotesProcess,
} from "../../test/contract/start-notes.ts";
import {
  openNotesTestbed,
  writeNotes,
  type NotesTestbed,
} from "../../test/supervisor/notes-testbed.ts";
import { configSchema } from "../config/schema.ts";
import { backupNotes } from "./backup.ts";
import { Database } from "./database.ts";
import { MILESTONE_ID } from "./livesync.ts";
import { notesJobs } from "./notes-jobs.ts";
import { listVaults } from "./overview.ts";
import { vaultChoices } from "./plugin-settings.ts";
import { repairVaults } from "./repair.ts";
import { dropUnfinished, restoreNotes } from "./restore.ts";

const DAMAGED = "vault-damaged";
const HEALTHY = "vault-healthy";
const quiet = { signal: new AbortController().signal, progress: () => {} };

const backUp = () =>
  backupNotes({ ...testbed, ...quiet, directory: testbed.backups });

let notes: NotesProcess;
let testbed: NotesTestbed;
let backup: string;

beforeAll(async () => {
  notes = await startNotes();
  testbed = await openNotesTestbed({
    name: "embedded store",
    embedded: true,
    start: async () => ({ url: notes.url, admin, stop: () => notes.stop() }),
  });
  const choices = vaultChoices.parse({});
  for (const vault of [DAMAGED, HEALTHY]) {
    await testbed.provisioning.add({ vault, choices });
    await writeNotes(testbed.couch, vault, 3);
  }
  backup = (await backUp()).path;
  await notes.kill("SIGTERM");
  const databases = join(notes.directory, "data", "databases");
  writeFileSync(join(databases, `${DAMAGED}.sqlite`), "damaged");
  notes = await notes.restart();
});
afterAll(() => testbed.close());

test("a damaged vault is listed beside the healthy ones, and can be removed and restored", async () => {
  const states = async () =>
    Object.fromEntries(
      (await listVaults(testbed)).map(({ vault, state }) => [vault, state]),
    );
  expect(await states()).toEqual({ [DAMAGED]: "damaged", [HEALTHY]: "open" });
  await expect(backUp()).rejects.toThrow(
    `vault "${DAMAGED}" is damaged: check the disk`,
  );
  expect(await dropUnfinished(testbed.couch, testbed.busy)).toEqual([]);

  const restore = () =>
    restoreNotes({ ...testbed, ...quiet, backup, vault: DAMAGED });
  await expect(restore()).rejects.toThrow(
    `vault "${DAMAGED}" is damaged: check the disk (\`dmesg\`), run \`hearth notes remove ${DAMAGED}\``,
  );
  await testbed.provisioning.remove(DAMAGED);
  await restore();
  expect(await states()).toEqual({ [DAMAGED]: "open", [HEALTHY]: "open" });
  const restored = await new Database(testbed.couch, DAMAGED).info();
  expect(restored?.doc_count).toBe(6);
  await backUp();
});

test("a vault of a newer version is not called damaged, and the version is named as what to install", async () => {
  const { couch } = testbed;
  await couch.ask("PUT", "/vault-newer");
  await notes.kill("SIGTERM");
  const file = join(notes.directory, "data", "databases", "vault-newer.sqlite");
  const newer = new DatabaseSync(file);
  newer.exec("PRAGMA user_version = 2");
  newer.close();
  notes = await notes.restart();
  const view = (await listVaults(testbed)).find(
    ({ vault }) => vault === "vault-newer",
  );
  expect(view?.state).toBe("newer");
  await expect(backUp()).rejects.toThrow(
    'vault "vault-newer" was written by a newer version of Hearth: run `hearth upgrade` from a checkout of that version.',
  );
  await couch.ask("DELETE", "/vault-newer");
});

/** Changes bytes of notes in the file, as a disk does; the file stays a valid database. */
async function damageNotes(vault: string, from: string, to: string) {
  const { couch } = testbed;
  await couch.ask("POST", `/${vault}/_compact`);
  await notes.kill("SIGTERM");
  const file = join(notes.directory, "data", "databases", `${vault}.sqlite`);
  const bytes = readFileSync(file, "latin1");
  expect(bytes).toContain(from);
  writeFileSync(file, bytes.replaceAll(from, to), "latin1");
  notes = await notes.restart();
}

test("damaged notes are missing in answers, named by the alarm's source, and repaired from a backup", async () => {
  const database = new Database(testbed.couch, HEALTHY);
  const options = { ...testbed, ...quiet, backup: (await backUp()).path };
  expect(await repairVaults(options)).toEqual([]);

  const [note] = await database.find({ selector: { type: "leaf" }, limit: 1 });
  const text = String(note?.["data"]);
  await damageNotes(HEALTHY, text, text.toUpperCase());
  expect(await database.revisions([{ id: note!._id }])).toEqual([]);
  const system = (await testbed.couch.ask(
    "GET",
    "/_node/_local/_system",
  )) as Readonly<Record<string, unknown>>;
  expect(system["failing_databases"]).toMatchObject([
    { database: HEALTHY, reason: "damaged_document" },
  ]);

  expect(await repairVaults(options)).toEqual([
    { vault: HEALTHY, repaired: [note!._id] },
  ]);
  const [repaired] = await database.revisions([{ id: note!._id }]);
  expect(repaired).toMatchObject({ _rev: note!._rev, data: text });
});

test("a damaged note that is not in the backup is named, with what to do", async () => {
  const database = new Database(testbed.couch, HEALTHY);
  const { path } = await backUp();
  await database.put("new", { type: "plain", data: "after the backup" });
  await damageNotes(HEALTHY, "after the backup", "after the buckap");
  await expect(
    repairVaults({ ...testbed, ...quiet, backup: path }),
  ).rejects.toThrow(
    `the content of 1 document of vault ${HEALTHY} is damaged, and the backup does not have it: new. Check the disk`,
  );
});

test("an unreadable vault does not keep the others from their repair", async () => {
  const database = new Database(testbed.couch, HEALTHY);
  await database.put("last", { type: "plain", data: "before the damage" });
  const options = { ...testbed, ...quiet, backup: (await backUp()).path };
  const databases = join(notes.directory, "data", "databases");
  await notes.kill("SIGTERM");
  writeFileSync(join(databases, `${DAMAGED}.sqlite`), "damaged");
  notes = await notes.restart();
  await damageNotes(HEALTHY, "before the damage", "before the dagame");
  await expect(repairVaults(options)).rejects.toThrow(
    `vault "${DAMAGED}" is damaged: check the disk`,
  );
  expect(await database.document("last")).toMatchObject({
    data: "before the damage",
  });
});

test("an unreadable vault does not keep the others from their compaction and reports", async () => {
  const database = new Database(testbed.couch, HEALTHY);
  await database.put(MILESTONE_ID, { locked: true, node_info: {} });
  for (const rev of ["1-aa", "1-bb"]) {
    await database.write([{ _id: "a.md", _rev: `${rev}${"0".repeat(30)}` }], {
      keepRevisions: true,
    });
  }
  const jobs = notesJobs({
    ...testbed,
    config: configSchema.parse({}),
    freeBytes: () => 1e12,
    address: () => testbed.server.url,
  });
  for (const name of ["compaction", "notes-conflicts", "notes-devices"]) {
    const job = jobs.find((each) => each.name === name);
    await expect(
      job?.run({ ...quiet, now: testbed.now, onDemand: true, options: {} }),
    ).rejects.toThrow(`vault "${DAMAGED}" is damaged: check the disk`);
  }
  expect(testbed.state.vault(HEALTHY)).toMatchObject({
    compactedAt: expect.any(Number) as number,
    conflicts: { "a.md": expect.any(Number) as number },
  });
  expect([...testbed.raised.keys()]).toEqual([`notes-locked:${HEALTHY}`]);
});
