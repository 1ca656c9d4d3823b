import { afterAll, beforeAll, expect, test } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import {
  serversUnderTest,
  type ServerUnderTest,
} from "../../test/contract/server-under-test.ts";
import {
  noteDocuments,
  openNotesTestbed,
  type NotesTestbed,
} from "../../test/supervisor/notes-testbed.ts";
import { Database } from "./database.ts";
import { growthOf } from "./growth.ts";
import { openHistory } from "./history-source.ts";
import { SEED_ID } from "./livesync.ts";
import { encryptText, NoteCipher } from "./note-cipher.ts";
import { vaultChoices } from "./plugin-settings.ts";
import { measureVault, rowsOf, spaceOf } from "./space.ts";
import { readVaultAt } from "./vault-past.ts";

const [embedded] = serversUnderTest() as [ServerUnderTest];
const choices = vaultChoices.parse({});
let testbed: NotesTestbed;

beforeAll(async () => {
  testbed = await openNotesTestbed(embedded);
});
afterAll(() => testbed.close());

test("a plain vault is measured by folder, including unused chunks", async () => {
  const vault = "vault-plain";
  await testbed.provisioning.add({ vault, choices });
  const database = new Database(testbed.couch, vault);
  await database.write([
    ...noteDocuments("daily/a.md", "a".repeat(3000), 1),
    ...noteDocuments("daily/deep/b.md", "b".repeat(5000), 1),
    ...noteDocuments("top.md", "t".repeat(1000), 1),
    { _id: "h:unused", type: "leaf", data: "u".repeat(2000) },
  ]);
  const source = openHistory(testbed.couch, vault);
  const measured = await measureVault(source, vault);
  expect(rowsOf(measured).map(({ name }) => name)).toEqual([
    "daily/",
    "top.md",
    "(old chunks)",
    "(history)",
    "(superseded)",
    "(notes)",
    "(other)",
    "Total",
  ]);
  expect(measured.folders).toMatchObject([
    { path: "daily/", files: 2 },
    { path: "top.md", files: 1 },
  ]);
  const [daily, top] = measured.folders!.map(({ bytes }) => bytes);
  expect(daily).toBeGreaterThan(8000);
  expect(daily).toBeLessThan(8500);
  expect(top).toBeGreaterThan(1000);
  expect(top).toBeLessThan(1500);
  expect(measured.unused).toMatchObject({ count: 1 });
  const cipher = new NoteCipher(vault, null, async () => "");
  const { now } = await source.summary();
  expect(
    spaceOf(
      await source.space(),
      await readVaultAt(source, cipher, now),
      "daily/",
    ).folders,
  ).toMatchObject([
    { path: "daily/deep/", files: 1 },
    { path: "daily/a.md", files: 1 },
  ]);
});

test("the server sees only sums of an encrypted vault; its folders require the passphrase", async () => {
  const vault = "vault-sealed";
  await testbed.provisioning.add({ vault, choices });
  const database = new Database(testbed.couch, vault);
  const salt = Buffer.alloc(32, 7);
  await database.put(SEED_ID, { pbkdf2salt: salt.toString("base64") });
  const inside = JSON.stringify({
    path: "secret/plan.md",
    mtime: 1,
    ctime: 1,
    size: 4,
    children: ["h:+one"],
  });
  await database.write([
    { _id: "h:+one", type: "leaf", data: "x".repeat(4000), e_: true },
    {
      _id: "f:plan",
      type: "plain",
      mtime: 0,
      ctime: 0,
      size: 0,
      children: [],
      eden: {},
      path: `/\\:${await encryptText(inside, "passphrase", new Uint8Array(salt))}`,
    },
  ]);
  const source = openHistory(testbed.couch, vault);
  const measured = await measureVault(source, vault);
  expect(measured).toMatchObject({ folders: null, unused: null });
  expect(measured.chunks).toBeGreaterThan(4000);
  const { salt: stored, now } = await source.summary();
  const cipher = new NoteCipher(vault, stored, async () => "passphrase");
  expect(
    spaceOf(await source.space(), await readVaultAt(source, cipher, now)),
  ).toMatchObject({
    folders: [{ path: "secret/", files: 1 }],
    unused: { count: 0 },
  });
});

test("the supervisor measures each vault once a day, and warns when the disk will be full within a month", async () => {
  const vault = "vault-growing";
  await testbed.provisioning.add({ vault, choices });
  const database = new Database(testbed.couch, vault);
  for (let at = 0; at < 4; at += 1) {
    await database.write(
      noteDocuments(`${at}.bin`, String(at).repeat(6_000_000), 1),
    );
    await testbed.inspector.inspectAll();
    await testbed.inspector.inspectAll();
    testbed.pass(DAY_MS);
  }
  expect(testbed.state.vault(vault).sizes).toHaveLength(4);
  expect(testbed.state.vault(vault).space?.folders).toHaveLength(4);
  const { perDay } = growthOf(testbed.state, vault, 1e8);
  expect(perDay).toBeGreaterThan(5_900_000);
  expect(perDay).toBeLessThan(6_500_000);
  expect(testbed.raised.get("notes-growth")).toMatchObject({
    level: "warning",
    command: `hearth notes space ${vault}`,
  });
  // The measurements of a recreated database start again.
  await testbed.provisioning.remove(vault);
  await testbed.inspector.inspectAll();
  expect(testbed.raised.has("notes-growth")).toBe(false);
});
