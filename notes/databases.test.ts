import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openDatabases, type Databases } from "./databases.ts";
import type { StorageFailure } from "./refusal.ts";

let directory: string;
let databases: Databases;
/** Databases that could not be read or written. */
let failing: [name: string, reason: StorageFailure | undefined][];

beforeEach(async () => {
  failing = [];
  directory = mkdtempSync(join(tmpdir(), "hearth-notes-databases-"));
  databases = await openAll();
});

function openAll(): Promise<Databases> {
  return openDatabases({
    directory,
    spoolDirectory: directory,
    passwordIterations: 1,
    historyMaxBytes: 1_000_000,
    // Closed almost immediately after use.
    idleMs: 4,
    events: {
      compacted: () => undefined,
      readOnly: () => undefined,
      failed: (name, _detail, reason) => failing.push([name, reason]),
      hung: (name) => expect.unreachable(`${name} hung`),
    },
  });
}

afterEach(async () => {
  await databases.close();
  rmSync(directory, { recursive: true });
});

const { signal } = new AbortController();

async function put(name: string, n: number): Promise<number> {
  const database = await databases.open(name);
  const { status } = await database.call(
    {
      operation: "putDocument",
      id: `note ${n}`,
      query: {},
      body: { kind: "memory", bytes: Buffer.from("{}") },
      maxDocumentSize: 1000,
    },
    signal,
  );
  return status;
}

async function count(name: string): Promise<unknown> {
  const database = await databases.open(name);
  const { body } = await database.call(
    { operation: "info", query: {}, maxDocumentSize: 0 },
    signal,
  );
  return (JSON.parse(body!) as { doc_count: unknown }).doc_count;
}

test("no request fails while its database closes", async () => {
  const names = ["one", "two", "three"];
  for (const name of names) {
    await databases.create(name);
  }
  await Promise.all(
    names.map(async (name) => {
      for (let n = 0; n < 12; n += 1) {
        await sleep(2 * (n % 6));
        expect(await put(name, n)).toBe(201);
      }
    }),
  );
  for (const name of names) {
    expect(await count(name)).toBe(12);
  }
});

test("a closed database can be deleted and created again", async () => {
  await databases.create("vault");
  await put("vault", 1);
  const start = (await databases.open("vault")).state().instanceStartTime;
  await expect.poll(() => databases.opened()).toEqual([]);
  await databases.remove("vault");
  expect(databases.names()).toEqual(["_users"]);
  await databases.create("vault");
  expect(await count("vault")).toBe(0);
  expect(
    Number((await databases.open("vault")).state().instanceStartTime),
  ).toBeGreaterThan(Number(start));
});

/** As a newer version of Hearth may leave it. */
function toNewerSchema(file: string): void {
  const newer = new DatabaseSync(file);
  newer.exec("PRAGMA user_version = 2; PRAGMA journal_mode = DELETE");
  newer.close();
}

test.each([
  [
    "is damaged",
    (file: string) => writeFileSync(file, "damaged"),
    "damaged",
    "damaged_file",
  ],
  [
    "was emptied",
    (file: string) => writeFileSync(file, ""),
    "damaged",
    "damaged_file",
  ],
  [
    "cannot be opened, as on a read-only disk,",
    (file: string) => {
      rmSync(file);
      mkdirSync(file);
    },
    "internal_error",
    "disk",
  ],
] as const)(
  "a database whose file %s is reported",
  async (_what, damage, code, reason) => {
    await databases.create("vault");
    await expect.poll(() => databases.opened()).toEqual([]);
    expect(failing).toEqual([]);
    damage(join(directory, "vault.sqlite"));
    await expect(databases.open("vault")).rejects.toMatchObject({ code });
    expect(failing).toEqual([["vault", reason]]);
  },
);

test("a database of a newer version is no failure of the disk, and the reason says what to do", async () => {
  await databases.create("vault");
  await expect.poll(() => databases.opened()).toEqual([]);
  toNewerSchema(join(directory, "vault.sqlite"));
  await expect(databases.open("vault")).rejects.toMatchObject({
    code: "newer_version",
    message:
      "The database was written by a newer version of Hearth (schema 2, supported: 1). Start that version.",
  });
  expect(failing).toEqual([["vault", undefined]]);
});

test("a database whose file was emptied while the store was stopped is reported, not forgotten", async () => {
  await databases.create("vault");
  await databases.close();
  writeFileSync(join(directory, "vault.sqlite"), "");
  databases = await openAll();
  expect(databases.names()).toEqual(["_users", "vault"]);
  await expect(databases.open("vault")).rejects.toThrow("damaged");
  expect(failing).toEqual([["vault", "damaged_file"]]);
});

test.each([
  ["a newer version", toNewerSchema, "newer_version"],
  ["an emptied file", (file: string) => writeFileSync(file, ""), "damaged"],
])("opening %s does not change it", async (_what, replace, code) => {
  await databases.create("vault");
  await expect.poll(() => databases.opened()).toEqual([]);
  const file = join(directory, "vault.sqlite");
  replace(file);
  const [names, bytes] = [readdirSync(directory), readFileSync(file)];
  await expect(databases.open("vault")).rejects.toMatchObject({ code });
  expect(readFileSync(file).equals(bytes)).toBe(true);
  expect(readdirSync(directory)).toEqual(names);
});

test("a database whose file is damaged can be deleted and created again", async () => {
  await databases.create("vault");
  await expect.poll(() => databases.opened()).toEqual([]);
  writeFileSync(join(directory, "vault.sqlite"), "damaged");
  await databases.remove("vault");
  expect(databases.names()).toEqual(["_users"]);
  await databases.create("vault");
  expect(await count("vault")).toBe(0);
});
