import { createPBKDF2Salt } from "octagonal-wheels/encryption/hkdf";
import { afterEach, beforeEach, expect, test } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import {
  collectChunks,
  findUnused,
  forgetReader,
  type Collection,
} from "../../supervisor/vaults/collection.ts";
import { openCouch, type Couch } from "../../supervisor/vaults/couch.ts";
import { openHistory } from "../../supervisor/vaults/history-source.ts";
import { MILESTONE_ID, SEED_ID } from "../../supervisor/vaults/livesync.ts";
import { NoteCipher } from "../../supervisor/vaults/note-cipher.ts";
import { remote, type Device } from "./devices.ts";
import {
  compactVault,
  DAY,
  MINUTE,
  startNotesWithClock,
  type NotesWithClock,
} from "./moved-notes.ts";
import { admin, ask } from "./start-notes.ts";
import { newVaultDevice, type VaultDevice } from "./vault-device.ts";
import { encryptionOf } from "./vault-encryption.ts";

const VAULT = "vault";
const PASSPHRASE = "not-a-secret-passphrase";
const salt = createPBKDF2Salt();
const pbkdf2salt = Buffer.from(salt).toString("base64");
const VAULTS = [
  ["plain", undefined],
  ["encrypted (E2EE v2)", encryptionOf(PASSPHRASE, salt)],
] as const;

let notes: NotesWithClock;
let couch: Couch;
let server: Device;

beforeEach(async () => {
  notes = await startNotesWithClock();
  couch = openCouch({ url: notes.url, password: () => admin.password });
  server = remote(notes.url, VAULT, admin);
  await ask(`${notes.url}/${VAULT}`, { method: "PUT" });
  await put(SEED_ID, { pbkdf2salt });
  // Ten minutes past the hour, so that a version that is current for a minute is not current at a full hour.
  notes.advance(HOUR_MS - (notes.now() % HOUR_MS) + 10 * MINUTE);
});
afterEach(() => notes.stop());

const put = async (id: string, json: unknown): Promise<void> => {
  await ask(`${notes.url}/${VAULT}/${id}`, { method: "PUT", json });
};

const run = async (free: boolean): Promise<Collection> => {
  const source = openHistory(couch, VAULT);
  const cipher = new NoteCipher(VAULT, pbkdf2salt, async () => PASSPHRASE);
  const unused = await findUnused(source, cipher);
  return collectChunks(couch, VAULT, unused, { free, now: notes.now() });
};

/** Makes the chunk of "old" unused in every stored version, and syncs every device beyond that point. */
async function leaveUnused(devices: readonly VaultDevice[]): Promise<void> {
  for (const text of ["old", "new"]) {
    await devices[0]!.write("a.md", text);
    for (const device of devices) {
      await device.sync(server);
    }
    notes.advance(MINUTE);
  }
  // The history is thinned once two runs agree on the time.
  for (const span of [2 * DAY, HOUR_MS]) {
    notes.advance(span);
    await compactVault(notes, VAULT);
  }
}

test.each(VAULTS)(
  "a chunk is deleted 30 days after the last version that used it, once every device has read beyond that point: %s",
  async (_name, encryption) => {
    const device = () => newVaultDevice(notes.now, encryption);
    const [one, two, late, offline] = [device(), device(), device(), device()];
    await one.write("first.md", "first");
    for (const each of [one, late, offline]) {
      await each.sync(server);
    }
    const node_info = { phone: { device_name: "Phone", progress: "1-x" } };
    await put(MILESTONE_ID, { node_info, accepted_nodes: ["phone", "tablet"] });
    await leaveUnused([one, two]);

    expect(await run(true)).toMatchObject({
      unused: { count: 1 },
      old: { count: 0 },
      freed: { count: 0 },
    });
    notes.advance(31 * DAY);
    const waiting = await run(true);
    expect(waiting).toMatchObject({
      old: { count: 1 },
      due: { count: 0 },
      freed: { count: 0 },
    });
    expect(waiting.waitingFor).toMatchObject([
      { id: "tablet", kind: "device", readUpTo: 0, lastSeen: null },
      { id: "phone", kind: "device", name: "Phone", readUpTo: 1 },
      { kind: "checkpoint" },
      { kind: "checkpoint" },
    ]);

    await late.sync(server);
    const { waitingFor } = await run(true);
    expect(waitingFor).toHaveLength(3);
    for (const { id } of waitingFor) {
      await forgetReader(couch, VAULT, id);
    }
    await expect(forgetReader(couch, VAULT, "phone")).rejects.toThrow(
      'has no device or checkpoint "phone"',
    );

    expect(await run(false)).toMatchObject({
      due: { count: 1 },
      freed: { count: 0 },
      waitingFor: [],
    });
    expect(await run(true)).toMatchObject({ freed: { count: 1 } });
    const expected = { "first.md": "first", "a.md": "new" };
    await offline.sync(server);
    for (const each of [one, two, late, offline]) {
      expect(await each.files(server)).toEqual(expected);
    }
  },
);

test.each(VAULTS)(
  "a deleted chunk that a device reuses from its local copy is sent again when another device requests it: %s",
  async (_name, encryption) => {
    const one = newVaultDevice(notes.now, encryption);
    const two = newVaultDevice(notes.now, encryption);
    await leaveUnused([one, two]);
    await run(true);
    notes.advance(31 * DAY);
    expect(await run(true)).toMatchObject({ freed: { count: 1 } });

    await one.write("b.md", "old");
    for (const device of [one, two]) {
      await device.sync(server);
    }
    await expect(two.files(server)).rejects.toThrow("is missing");
    await one.sync(server);
    expect(await two.files(server)).toEqual({ "a.md": "new", "b.md": "old" });
  },
);

test("nothing is collected from an encrypted vault without the passphrase", async () => {
  const [[, encryption]] = VAULTS.slice(1) as [(typeof VAULTS)[1]];
  const one = newVaultDevice(notes.now, encryption);
  await one.write("a.md", "text");
  await one.sync(server);
  const cipher = new NoteCipher(VAULT, pbkdf2salt, async () => "another");
  await expect(findUnused(openHistory(couch, VAULT), cipher)).rejects.toThrow(
    "wrong passphrase",
  );
});
