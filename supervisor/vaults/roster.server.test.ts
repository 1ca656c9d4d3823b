import { afterAll, beforeAll, expect, test } from "vitest";
import { newDevice, remote, type Device } from "../../test/contract/devices.ts";
import {
  serversUnderTest,
  type ServerUnderTest,
} from "../../test/contract/server-under-test.ts";
import {
  openNotesTestbed,
  type NotesTestbed,
} from "../../test/supervisor/notes-testbed.ts";
import { Database } from "./database.ts";
import { MILESTONE_ID } from "./livesync.ts";
import { devicesOf, lockOf, openRosters } from "./known-rosters.ts";
import { readRoster } from "./roster.ts";

const [under] = serversUnderTest() as [ServerUnderTest];
let testbed: NotesTestbed;
let database: Database;
beforeAll(async () => {
  testbed = await openNotesTestbed(under);
  database = new Database(testbed.couch, "vault-roster");
  await database.create();
});
afterAll(() => testbed.close());

/** A milestone document as in LiveSync 1.0.16. */
const milestone = (more: Readonly<Record<string, unknown>> = {}) => ({
  type: "milestoneinfo",
  created: 1_795_229_971_081,
  locked: false,
  accepted_nodes: ["25pduyajvq"],
  node_info: {
    "25pduyajvq": {
      app_version: "1.8.9",
      plugin_version: "1.0.16",
      vault_name: "home",
      device_name: "desktop",
      progress: "3-g1AAAABReJzLYWBg",
      last_connected: 1_795_230_088_462,
    },
    k8had5wo5h: {
      app_version: "1.8.9",
      plugin_version: "1.0.9",
      vault_name: "home",
      device_name: "phone",
      progress: "1-g1AAAABReJzLYWBg",
      last_connected: 1_795_229_980_102,
    },
  },
  tweak_values: {
    "25pduyajvq": { customChunkSize: 60, encrypt: true, tweakModified: 1 },
    k8had5wo5h: { customChunkSize: 50, encrypt: true, tweakModified: 2 },
    PREFERRED: { customChunkSize: 60, encrypt: true, tweakModified: 3 },
  },
  ...more,
});

test("a vault that was never synced has no devices", async () => {
  expect(await readRoster(database)).toEqual({
    vault: "vault-roster",
    locked: false,
    devices: [],
    remarks: [],
  });
});

test("devices are listed with pending changes, outdated plugins and differing settings", async () => {
  for (let n = 0; n < 4; n += 1) {
    await database.put(`note ${n}`, { n });
  }
  await database.put(MILESTONE_ID, milestone());
  const roster = await readRoster(database);
  const { update_seq } = (await database.info()) ?? { update_seq: "" };
  expect(roster.devices).toEqual([
    {
      id: "25pduyajvq",
      name: "desktop",
      pluginVersion: "1.0.16",
      appVersion: "1.8.9",
      lastSeen: 1_795_230_088_462,
      behind: Number.parseInt(update_seq, 10) - 3,
      outdated: false,
      differs: {},
      accepted: true,
    },
    {
      id: "k8had5wo5h",
      name: "phone",
      pluginVersion: "1.0.9",
      appVersion: "1.8.9",
      lastSeen: 1_795_229_980_102,
      behind: Number.parseInt(update_seq, 10) - 1,
      outdated: true,
      differs: { customChunkSize: { here: 50, preferred: 60 } },
      accepted: false,
    },
  ]);
  expect(roster.remarks).toEqual([
    "phone has Self-hosted LiveSync 1.0.9, the newest here is 1.0.16: update it.",
    "phone differs from the vault's settings in customChunkSize: choose the remote's there when the plugin asks.",
  ]);
});

test("no device is behind once as many replication checkpoints as devices are at the newest note", async () => {
  await database.put(MILESTONE_ID, milestone());
  const { url, admin } = testbed.server;
  const server = remote(url, database.name, admin);
  const [desktop, phone] = [newDevice(), newDevice()];
  const pull = async (device: Device): Promise<void> => {
    await device.replicate.from(server, {
      selector: { type: { $ne: "leaf" } },
    });
  };
  const behind = async (): Promise<readonly boolean[]> =>
    (await readRoster(database)).devices.map((device) => device.behind > 0);
  await database.put("a.md", { type: "plain" });
  await database.put("h:a", { type: "leaf" });
  await pull(desktop);
  expect(await behind()).toEqual([true, true]);
  await pull(phone);
  expect(await behind()).toEqual([false, false]);
  await database.put("b.md", { type: "plain" });
  await pull(phone);
  expect(await behind()).toEqual([true, true]);
  await pull(desktop);
  expect(await behind()).toEqual([false, false]);
  await Promise.all([desktop.destroy(), phone.destroy()]);
});

test("a locked remote is reported with the devices without access", async () => {
  await database.put(MILESTONE_ID, milestone({ locked: true }));
  const { locked, remarks } = await readRoster(database);
  expect(locked).toBe(true);
  expect(remarks[0]).toEqual(
    expect.stringMatching(
      /^A device has locked the vault, as a rebuild does: on phone, fetch everything .* choose "I'm ready, unlock the database"\.$/,
    ) as string,
  );
});

test("a locked vault needs attention since it was first seen, until it is unlocked", async () => {
  let now = 1000;
  const read = openRosters(testbed.couch, () => now);
  const locks = async (quiet: readonly string[] = []) =>
    (await read(["vault-roster"], new Set(quiet))).flatMap(lockOf);
  await database.put(MILESTONE_ID, milestone({ locked: true }));
  const found = [
    {
      about: { topic: "vault", id: "vault-roster" },
      text: expect.stringMatching(
        /^vault vault-roster: A device has locked the vault/,
      ),
      since: 1000,
    },
  ];
  expect(await locks()).toMatchObject(found);
  now = 2000;
  expect(await locks()).toMatchObject(found);
  await database.put(MILESTONE_ID, milestone());
  expect(await locks(["vault-roster"])).toMatchObject(found);
  expect(await locks()).toEqual([]);
  const devices = (await read(["vault-roster"], new Set())).flatMap(devicesOf);
  expect(devices.map(({ name }) => name).toSorted()).toEqual([
    "desktop",
    "phone",
  ]);
});
