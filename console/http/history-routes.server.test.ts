import { setTimeout as sleep } from "node:timers/promises";
import Fastify, { type FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startNotes,
  admin,
  type NotesProcess,
} from "../../test/contract/start-notes.ts";
import { historyThrough } from "../../cli/vault-history.ts";
import { findStack } from "../../cli/stack-client.ts";
import { openCouch, type Couch } from "../../supervisor/vaults/couch.ts";
import { Database } from "../../supervisor/vaults/database.ts";
import { openHistory } from "../../supervisor/vaults/history-source.ts";
import { NoteCipher } from "../../supervisor/vaults/note-cipher.ts";
import type { VaultOperations } from "../../supervisor/vaults/vault-acts.ts";
import {
  contentOf,
  readVaultAt,
  restoreVault,
} from "../../supervisor/vaults/vault-past.ts";
import { registerHistoryRoutes } from "./history-routes.ts";

const VAULT = "vault-past";
let notes: NotesProcess;
let couch: Couch;
let server: FastifyInstance;
let address: string;

beforeAll(async () => {
  notes = await startNotes();
  couch = openCouch({ url: notes.url, password: () => admin.password });
  await new Database(couch, VAULT).create();
  const acts = {
    history: async (name: string) => openHistory(couch, name),
    restoreNotes: async (
      name: string,
      ...args: Parameters<ReturnType<typeof openHistory>["write"]>
    ) => openHistory(couch, name).write(...args),
  };
  server = Fastify();
  registerHistoryRoutes(server, acts as unknown as VaultOperations);
  address = await server.listen({ port: 0, host: "127.0.0.1" });
});
afterAll(async () => {
  await server.close();
  await notes.stop();
});

const write = async (
  path: string,
  members: Readonly<Record<string, unknown>>,
): Promise<void> => {
  const database = new Database(couch, VAULT);
  const known = await database.document(path);
  await database.put(path, {
    ...(known === undefined ? {} : { _rev: known._rev }),
    type: "plain",
    path,
    mtime: 1,
    ctime: 1,
    size: 3,
    eden: {},
    ...members,
  });
};

const moment = async (): Promise<number> => {
  await sleep(5);
  const now = Date.now();
  await sleep(5);
  return now;
};

test("one folder is restored through the API, binary files included; other folders stay", async () => {
  const database = new Database(couch, VAULT);
  const bytes = Buffer.from([0, 255, 128, 7]);
  await database.write([
    { _id: "h:a", type: "leaf", data: "old" },
    { _id: "h:b", type: "leaf", data: "new" },
    { _id: "h:i", type: "leaf", data: bytes.toString("base64") },
  ]);
  await write("daily/a.md", { children: ["h:a"] });
  await write("daily/i.png", { type: "newnote", children: ["h:i"] });
  await write("other.md", { children: ["h:a"] });
  const at = await moment();
  await write("daily/a.md", { children: ["h:b"] });
  await write("daily/i.png", { deleted: true, children: [] });
  await write("daily/later.md", { children: ["h:b"] });
  await write("other.md", { children: ["h:b"] });

  const source = historyThrough(findStack(address, {}), VAULT);
  const { salt } = await source.summary();
  expect(salt).toBeNull();
  const cipher = new NoteCipher(VAULT, salt, async () => "");
  const restored = await restoreVault(source, cipher, {
    at,
    path: "daily",
    now: Date.now(),
  });
  expect(restored).toEqual({
    at,
    written: ["daily/a.md", "daily/i.png"],
    deleted: ["daily/later.md"],
    unchanged: 0,
    unreadable: [],
  });
  const { notes: present } = await readVaultAt(source, cipher, Date.now());
  const contents = new Map<string, Buffer>();
  for (const { note } of present.values()) {
    if (!note.deleted) {
      contents.set(note.path, await contentOf(source, cipher, note));
    }
  }
  expect(contents).toEqual(
    new Map([
      ["daily/a.md", Buffer.from("old")],
      ["daily/i.png", bytes],
      ["other.md", Buffer.from("new")],
    ]),
  );
  expect(await source.versions("daily/a.md")).toHaveLength(3);
  const { chunkSizes } = await source.space();
  expect(chunkSizes.map(([id]) => id)).toEqual(["h:a", "h:b", "h:i"]);
  await expect(
    restoreVault(source, cipher, { at, path: "none.md", now: Date.now() }),
  ).rejects.toThrow('"none.md" did not exist');
  await expect(source.notesAt(1, "")).rejects.toThrow(
    /^the history of vault \S+ starts at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\. Choose a later time\.$/,
  );
});
