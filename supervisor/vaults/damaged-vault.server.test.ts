import { writeFileSync } from "node:fs";
import { join } from "node:path";
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
import { backupNotes } from "./backup.ts";
import { openDatabase } from "./database.ts";
import { listVaults } from "./overview.ts";
import { vaultChoices } from "./plugin-settings.ts";
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
    `vault "${DAMAGED}" is damaged, and a backup without it would`,
  );
  expect(await dropUnfinished(testbed.couch, testbed.busy)).toEqual([]);

  const restore = () =>
    restoreNotes({ ...testbed, ...quiet, backup, vault: DAMAGED });
  await expect(restore()).rejects.toThrow(
    `vault "${DAMAGED}" is damaged: remove it first with \`hearth notes remove ${DAMAGED}\``,
  );
  await testbed.provisioning.remove(DAMAGED);
  await restore();
  expect(await states()).toEqual({ [DAMAGED]: "open", [HEALTHY]: "open" });
  const restored = await openDatabase(testbed.couch, DAMAGED).info();
  expect(restored?.doc_count).toBe(6);
  await backUp();
});
