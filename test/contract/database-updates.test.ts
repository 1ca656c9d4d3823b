import { afterAll, beforeAll, expect, test } from "vitest";
import { ask, startNotes, type NotesProcess } from "./start-notes.ts";

let notes: NotesProcess;

beforeAll(async () => {
  notes = await startNotes();
});

afterAll(async () => {
  await notes.stop();
});

interface Updates {
  readonly results: readonly {
    readonly db_name: string;
    readonly type: string;
  }[];
  readonly last_seq: string;
}

const updates = async (query: string): Promise<Updates> => {
  const answer = await ask(`${notes.url}/_db_updates?${query}`);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Updates;
};
const names = ({ results }: Updates): string[] =>
  results.map(({ db_name, type }) => `${type} ${db_name}`);
const put = async (path: string): Promise<void> => {
  const answer = await ask(`${notes.url}/${path}`, { method: "PUT", json: {} });
  expect(answer.status).toBe(201);
};
const drop = async (name: string): Promise<void> => {
  await ask(`${notes.url}/${name}`, { method: "DELETE" });
};

test("a long poll returns after a creation, a deletion and a write, and includes events between two polls", async () => {
  const { last_seq: since } = await updates("since=now");
  const poll = async (from: string, change: () => Promise<void>) => {
    const waiting = updates(`feed=longpoll&since=${from}&heartbeat=60000`);
    await change();
    return await waiting;
  };
  const created = await poll(since, () => put("vault"));
  expect(names(created)).toEqual(["created vault"]);
  const written = await poll(created.last_seq, () => put("vault/_local/seed"));
  expect(names(written)).toEqual(["updated vault"]);
  await drop("vault");
  await put("vault");
  const rebuilt = await updates(`feed=longpoll&since=${written.last_seq}`);
  expect(names(rebuilt)).toEqual(["deleted vault", "created vault"]);
  const deleted = await poll(rebuilt.last_seq, () => drop("vault"));
  expect(names(deleted)).toEqual(["deleted vault"]);
  expect(names(await updates(`since=${deleted.last_seq}`))).toEqual([]);
});

test("a continuous feed has a line for each event and ends at its timeout", async () => {
  const feed = await ask(
    `${notes.url}/_db_updates?feed=continuous&since=now&heartbeat=60000`,
  );
  const reader = feed.body!.getReader();
  let text = "";
  await put("lines");
  await drop("lines");
  while (!text.includes("deleted")) {
    text += Buffer.from((await reader.read()).value!).toString();
  }
  await reader.cancel();
  const lines = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as unknown);
  expect(lines).toMatchObject([
    { db_name: "lines", type: "created" },
    { db_name: "lines", type: "deleted" },
  ]);
  const ended = await ask(
    `${notes.url}/_db_updates?feed=continuous&since=now&timeout=1`,
  );
  expect(await ended.json()).toHaveProperty("last_seq");
});

test("after a restart every database counts as changed", async () => {
  await put("kept");
  const { last_seq: since } = await updates("since=now");
  notes = await notes.restart();
  expect(names(await updates(`feed=longpoll&since=${since}`)).sort()).toEqual([
    "updated _users",
    "updated kept",
  ]);
});

test("only admins have access, and the event source feed is not available", async () => {
  const user = { name: "member", password: "not-a-secret-member" };
  await ask(`${notes.url}/_users/org.couchdb.user:member`, {
    method: "PUT",
    json: { ...user, type: "user", roles: [] },
  });
  expect((await ask(`${notes.url}/_db_updates`, { user })).status).toBe(401);
  expect((await ask(`${notes.url}/_db_updates?feed=eventsource`)).status).toBe(
    501,
  );
});
