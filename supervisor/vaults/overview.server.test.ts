import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  serversUnderTest,
  type ServerUnderTest,
} from "../../test/contract/server-under-test.ts";
import {
  openNotesTestbed,
  type NotesTestbed,
} from "../../test/supervisor/notes-testbed.ts";
import { backupNotes } from "./backup.ts";
import type { Couch } from "./couch.ts";
import { listVaults, viewVault } from "./overview.ts";

const [embedded] = serversUnderTest() as [ServerUnderTest];
const VAULTS = ["a", "b", "c", "d", "e", "f"];
let testbed: NotesTestbed;

beforeAll(async () => {
  testbed = await openNotesTestbed(embedded);
  for (const vault of VAULTS.toReversed()) {
    await testbed.couch.ask("PUT", `/${vault}`);
  }
});
afterAll(() => testbed.close());

test("a few vaults are read at the same time, and listed in the order of their names", async () => {
  let running = 0;
  let most = 0;
  const couch: Couch = {
    ...testbed.couch,
    find: async (path, options) => {
      running += 1;
      most = Math.max(most, running);
      return testbed.couch.find(path, options).finally(() => (running -= 1));
    },
  };
  const views = await listVaults({ ...testbed, couch });
  expect(views.map(({ vault }) => vault)).toEqual(VAULTS);
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThan(VAULTS.length);
});

test("damaged files of a vault are its problems, and the other vaults are listed", async () => {
  const { escrow, files } = testbed;
  for (const path of [files.pathOf("b"), escrow.pathOf("b")]) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, "{");
  }
  const views = await listVaults(testbed);
  expect(views.map(({ vault }) => vault)).toEqual(VAULTS);
  expect(views.filter(({ problems }) => problems.length > 0)).toMatchObject([
    { vault: "b" },
  ]);
  const view = await viewVault(testbed, "b");
  expect(view?.problems).toEqual([
    `${files.pathOf("b")} is damaged: run \`hearth notes rotate b\` to create a new one, with a new password.`,
    expect.stringContaining(`${escrow.pathOf("b")} is damaged`),
  ]);
});

test("the newest backup that contains a vault is named", async () => {
  const backupOf = async (vault: string) =>
    (await viewVault(testbed, vault))?.backup;
  expect(await backupOf("a")).toBeNull();
  const { name } = await backupNotes({
    ...testbed,
    directory: testbed.backups,
    signal: new AbortController().signal,
    progress: () => {},
  });
  await testbed.couch.ask("PUT", "/later");
  expect(await backupOf("a")).toBe(name);
  expect(await backupOf("later")).toBeNull();
});
