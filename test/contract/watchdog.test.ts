import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ask, startNotes, testIni, type NotesProcess } from "./start-notes.ts";

let notes: NotesProcess;

beforeAll(async () => {
  notes = await startNotes(`${testIni()}\n[hearth]\nwatchdog_seconds=1\n`);
});

afterAll(async () => {
  await notes.stop();
});

interface System {
  readonly hung_databases?: readonly string[];
  readonly reopened_databases?: readonly { readonly database: string }[];
}

const system = async (): Promise<System> =>
  (await (await ask(`${notes.url}/_node/_local/_system`)).json()) as System;

test("a vault with a hanging thread is reported and reopened, while other vaults keep responding", async () => {
  await ask(`${notes.url}/hung`, { method: "PUT" });
  await ask(`${notes.url}/other`, { method: "PUT" });
  const write = (id: string): Promise<Response> =>
    ask(`${notes.url}/hung/${id}`, { method: "PUT", json: { n: 1 } });
  expect((await write("before")).status).toBe(201);
  const feed = ask(
    `${notes.url}/hung/_changes?feed=longpoll&since=now&heartbeat=60000`,
  );
  await feed;

  // Another process locks the file: SQLite blocks the thread for five seconds, during which it does not respond.
  const other = new DatabaseSync(
    join(notes.directory, "data", "databases", "hung.sqlite"),
  );
  other.exec("BEGIN IMMEDIATE");
  const hanging = write("during");
  await expect
    .poll(async () => await (await fetch(`${notes.url}/_up`)).json(), {
      timeout: 60_000,
      interval: 50,
    })
    .toEqual({ status: "ok", seeds: {}, hung_databases: 1 });
  expect((await ask(`${notes.url}/other`)).status).toBe(200);
  const given = await hanging;
  expect(given.status).toBe(503);
  expect(given.headers.get("retry-after")).toBe("5");
  expect(await given.json()).toMatchObject({ error: "service_unavailable" });
  other.exec("ROLLBACK");
  other.close();

  // 503 until it is open again; a client would interpret "Database does not exist" as a reset.
  await expect
    .poll(
      async () => {
        const { status } = await write("after");
        expect([201, 503]).toContain(status);
        return status;
      },
      { timeout: 60_000 },
    )
    .toBe(201);
  expect((await ask(`${notes.url}/hung/before`)).status).toBe(200);
  expect(await (await feed).json()).toMatchObject({ results: [] });
  const { reopened_databases: reopened, hung_databases: hung } = await system();
  expect(reopened?.map(({ database }) => database)).toEqual(["hung"]);
  expect(hung).toEqual([]);
  expect(await (await fetch(`${notes.url}/_up`)).json()).toEqual({
    status: "ok",
    seeds: {},
  });
  expect(notes.log.join("\n")).toContain("database hung, reopening it");
});

test("a hanging vault can be deleted", async () => {
  await ask(`${notes.url}/stuck`, { method: "PUT" });
  const other = new DatabaseSync(
    join(notes.directory, "data", "databases", "stuck.sqlite"),
  );
  other.exec("BEGIN IMMEDIATE");
  const write = ask(`${notes.url}/stuck/a`, { method: "PUT", json: {} });
  await expect
    .poll(async () => (await system()).hung_databases, { timeout: 60_000 })
    .toEqual(["stuck"]);
  const removed = ask(`${notes.url}/stuck`, { method: "DELETE" });
  expect((await write).status).toBe(503);
  expect((await removed).status).toBe(200);
  other.close();
  expect((await ask(`${notes.url}/stuck`)).status).toBe(404);
});
