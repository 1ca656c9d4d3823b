import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  ask,
  askInParts,
  startNotes,
  testIni,
  type NotesProcess,
} from "./start-notes.ts";

let notes: NotesProcess;

beforeAll(async () => {
  notes = await startNotes(`${testIni()}\n[hearth]\nidle_seconds=1\n`);
});

afterAll(async () => {
  await notes.stop();
});

/** Names of the open vaults. */
const openVaults = async (): Promise<string[]> => {
  const answer = await ask(`${notes.url}/_node/_local/_system`);
  const system = (await answer.json()) as { open_databases: string[] };
  return system.open_databases.filter((name) => name !== "_users").toSorted();
};

/** Resident memory of the process in bytes. */
const residentBytes = (): number =>
  1024 *
  Number(
    /^VmRSS:\s+(\d+) kB$/m.exec(
      readFileSync(`/proc/${notes.pid}/status`, "utf8"),
    )![1],
  );

const put = async (path: string): Promise<Response> =>
  await ask(`${notes.url}/${path}`, { method: "PUT", json: {} });

test("unused databases are closed and reopened by the next request; those with feeds or requests in progress stay open", async () => {
  const unused = Array.from({ length: 6 }, (_each, index) => `unused-${index}`);
  const used = ["feed", "longpoll", "upload"];
  for (const name of [...unused, ...used]) {
    await put(name);
  }
  const stop = new AbortController();
  const follow = async (name: string, signal: AbortSignal): Promise<Response> =>
    await ask(
      `${notes.url}/${name}/_changes?feed=continuous&since=now&heartbeat=60000`,
      { signal },
    );
  const feed = await follow("feed", new AbortController().signal);
  const longpoll = await ask(
    `${notes.url}/longpoll/_changes?feed=longpoll&since=now&heartbeat=60000`,
  );
  const upload = await askInParts(
    `${notes.url}/upload/slow`,
    { method: "PUT" },
    ['{"text":"', 'arrived"}'],
  );
  // Referenced until the end: the connection of an answer that is garbage is closed.
  const feeds: Response[] = [];
  for (const name of unused) {
    feeds.push(await follow(name, stop.signal));
    await put(`${name}/note`);
  }
  expect(await openVaults()).toEqual([...used, ...unused].toSorted());
  const before = residentBytes();
  const info = await ask(`${notes.url}/unused-0`);
  const { update_seq: since } = (await info.json()) as { update_seq: string };

  stop.abort();
  expect(feeds).toHaveLength(unused.length);
  await expect.poll(openVaults, { timeout: 60_000 }).toEqual(used.toSorted());
  expect(residentBytes()).toBeLessThan(before - 10_000_000);

  expect((await upload.finish()).status).toBe(201);
  await put("feed/after");
  await put("longpoll/after");
  expect(await longpoll.json()).toMatchObject({ results: [{ id: "after" }] });
  const reader = feed.body!.getReader();
  let lines = "";
  while (!lines.includes('"after"')) {
    lines += Buffer.from((await reader.read()).value!).toString();
  }
  await reader.cancel();

  for (const name of unused) {
    expect((await ask(`${notes.url}/${name}/note`)).status).toBe(200);
  }
  const changes = await ask(`${notes.url}/unused-0/_changes?since=${since}`);
  expect(await changes.json()).toMatchObject({ results: [], last_seq: since });
  // Databases that were in use are closed later.
  await expect.poll(openVaults, { timeout: 60_000 }).toEqual([]);
});
