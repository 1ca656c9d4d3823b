import { HOUR_MS } from "../../core/duration.ts";
import {
  ask,
  admin,
  startNotes,
  type NotesProcess,
} from "../contract/start-notes.ts";
import { remote, type Device } from "../contract/devices.ts";
import { newVaultDevice, type VaultDevice } from "../contract/vault-device.ts";
import type { SetupAnswer } from "../../supervisor/vaults/provisioning.ts";
import { startConsoleTestbed, type ConsoleTestbed } from "./console-testbed.ts";

export type NotesConsole = ConsoleTestbed & {
  readonly store: NotesProcess;
  /** Creates a vault as `hearth notes add` does. */
  readonly makeVault: (
    vault: string,
    choices?: Readonly<Record<string, unknown>>,
  ) => Promise<SetupAnswer>;
};

/** A real notes store, and a supervisor with its pages, connected to it. */
export async function startNotesConsole(): Promise<NotesConsole> {
  const store = await startNotes();
  const testbed = await startConsoleTestbed({
    services: [],
    settings: { notes: { first_vault: "off" } },
    env: {
      NOTES_URL: store.url,
      NOTES_ADMIN_PASSWORD: admin.password,
    },
  });
  return {
    ...testbed,
    store,
    makeVault: async (vault, choices = {}) => {
      const answer = await ask(`${testbed.address}/api/notes`, {
        user: { name: "operator", password: testbed.operatorPassword },
        json: { vault, ...choices },
      });
      if (answer.status !== 200) {
        throw new Error(await answer.text());
      }
      return (await answer.json()) as SetupAnswer;
    },
    stop: async () => {
      await testbed.stop();
      await store.stop();
    },
  };
}

/** The vault as devices access it. */
export function serverOf(testbed: NotesConsole, created: SetupAnswer): Device {
  return remote(testbed.store.url, encodeURIComponent(created.vault), {
    name: created.user,
    password: created.password,
  });
}

/** Two devices that edited the same note offline; the second one later. */
export async function conflictOf(
  server: Device,
  path: string,
  texts: readonly [string, string],
): Promise<readonly [VaultDevice, VaultDevice]> {
  let at = Date.UTC(2026, 10, 20, 9, 30);
  const newDevice = () => newVaultDevice(() => (at += HOUR_MS));
  const [left, right] = [newDevice(), newDevice()];
  await left.write(path, "as it was");
  await left.sync(server);
  await right.sync(server);
  await left.write(path, texts[0]);
  await right.write(path, texts[1]);
  for (const device of [left, right, left]) {
    await device.sync(server);
  }
  return [left, right];
}

/** A note that two devices wrote encrypted: the store sees revisions only. */
export async function encryptedConflict(
  testbed: NotesConsole,
  vault: string,
): Promise<void> {
  const id = `f:${"ab".repeat(32)}`;
  await ask(`${testbed.store.url}/${vault}/_bulk_docs`, {
    json: {
      new_edits: false,
      docs: ["a", "b"].map((each) => ({
        _id: id,
        _rev: `1-${each.repeat(32)}`,
        type: "plain",
        path: `/\\:%=${each.repeat(80)}`,
        children: [],
        eden: {},
        ctime: 0,
        mtime: 0,
        size: 0,
      })),
    },
  });
}

/** A note in two versions, written as devices do without encryption: the id is the path in lower case. */
export async function plainConflict(
  testbed: NotesConsole,
  vault: string,
  path: string,
  texts: readonly [string, string],
): Promise<void> {
  await ask(`${testbed.store.url}/${vault}/_bulk_docs`, {
    json: {
      new_edits: false,
      docs: texts.map((data, at) => ({
        _id: path.toLowerCase(),
        _rev: `1-${"ab".charAt(at).repeat(32)}`,
        type: "plain",
        path,
        children: ["h:text"],
        eden: { "h:text": { data, epoch: 1 } },
        ctime: 0,
        mtime: at,
        size: data.length,
      })),
    },
  });
}

/** The devices' entries in the vault's milestone. */
export async function introduce(
  testbed: NotesConsole,
  vault: string,
  devices: Readonly<Record<string, string>>,
): Promise<void> {
  const now = Date.now();
  const names = Object.keys(devices);
  const answer = await ask(
    `${testbed.store.url}/${encodeURIComponent(vault)}/_local/obsydian_livesync_milestone`,
    {
      method: "PUT",
      json: {
        type: "milestoneinfo",
        created: now,
        locked: false,
        cleaned: false,
        accepted_nodes: names,
        node_info: Object.fromEntries(
          names.map((id, index) => [
            id,
            {
              device_name: devices[id],
              vault_name: vault,
              app_version: "1.10.3",
              plugin_version: index === 0 ? "1.0.16" : "1.0.14",
              progress: index === 0 ? "9999" : "1",
              last_connected: now - (index * 29 + 1) * HOUR_MS,
            },
          ]),
        ),
      },
    },
  );
  if (!answer.ok) {
    throw new Error(await answer.text());
  }
}
