import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  admin,
  ask,
  askInParts,
  startNotes,
  testIni,
  type NotesProcess,
} from "./start-notes.ts";

let notes: NotesProcess;
/** Checks of passwords take a while. */
let slow: NotesProcess;

beforeAll(async () => {
  [notes, slow] = await Promise.all([
    startNotes(),
    startNotes(testIni({}, 100_000)),
  ]);
});
afterAll(async () => {
  await notes?.stop();
  await slow?.stop();
});

interface Named {
  readonly name: string;
  readonly password: string;
}

let users = 0;

/** A user of one test: guesses are counted by user. */
async function newUser(at: NotesProcess = notes): Promise<Named> {
  const user = { name: `ann-${++users}`, password: "not-a-secret-ann" };
  await save(user, at);
  return user;
}

async function save(user: Named, at: NotesProcess = notes): Promise<void> {
  const address = `${at.url}/_users/org.couchdb.user:${user.name}`;
  const before = await ask(address);
  const { _rev } = (await before.json()) as { _rev?: string };
  const saved = await ask(address, {
    method: "PUT",
    json: { ...user, ...(_rev && { _rev }), roles: [], type: "user" },
  });
  expect(saved.status).toBe(201);
}

async function saveAdmin(
  { name, password }: Named,
  at: NotesProcess = notes,
): Promise<void> {
  const saved = await ask(`${at.url}/_node/_local/_config/admins/${name}`, {
    method: "PUT",
    json: password,
  });
  expect(saved.status).toBe(200);
}

/** Counts each status. */
async function count(
  answers: readonly Promise<Response>[],
): Promise<Record<number, number>> {
  const counted: Record<number, number> = {};
  for (const { status } of await Promise.all(answers)) {
    counted[status] = (counted[status] ?? 0) + 1;
  }
  return counted;
}

const times = <T>(number: number, make: (index: number) => T): T[] =>
  Array.from({ length: number }, (_each, index) => make(index));

test.each(["different", "the same"])(
  "of 60 concurrent wrong passwords, all %s, five get 401",
  async (kind) => {
    const ann = await newUser(slow);
    const guesses = times(60, (index) =>
      ask(slow.url, {
        user: {
          name: ann.name,
          password: kind === "different" ? `wrong-${index}` : "wrong",
        },
      }),
    );
    expect(await count(guesses)).toEqual({ 401: 5, 403: 55 });
    expect((await ask(slow.url, { user: ann })).status).toBe(403);
  },
);

test("concurrent first requests of a device check its password once", async () => {
  const ann = await newUser(slow);
  const requests = times(40, () => ask(slow.url, { user: ann }));
  expect(await count(requests)).toEqual({ 200: 40 });
});

test("guesses of many names wait in a bounded queue, which known devices bypass", async () => {
  const ann = await newUser(slow);
  expect((await ask(slow.url, { user: ann })).status).toBe(200);
  const guesses = times(60, (index) =>
    ask(slow.url, { user: { name: `unknown-${index}`, password: "wrong" } }),
  );
  const known = times(20, () => ask(slow.url, { user: ann }));
  expect(await count(known)).toEqual({ 200: 20 });
  const answers = await Promise.all(guesses);
  const rejected = answers.filter(({ status }) => status === 503);
  expect(rejected.length).toBeGreaterThan(0);
  expect(rejected[0]!.headers.get("retry-after")).toBe("5");
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(
    60 - rejected.length,
  );
});

test("a forged X-Forwarded-For neither evades the lockout nor locks out another address", async () => {
  const ann = await newUser();
  const wrong = { name: ann.name, password: "wrong" };
  for (const index of times(5, (each) => each)) {
    await ask(notes.url, {
      user: wrong,
      headers: { "x-forwarded-for": `203.0.113.${index}` },
    });
  }
  const again = await ask(notes.url, {
    user: ann,
    headers: { "x-forwarded-for": "203.0.113.99" },
  });
  expect(again.status).toBe(403);
});

test("_users cannot be deleted, and databases of missing features cannot be created", async () => {
  const ann = await newUser();
  const removed = await ask(`${notes.url}/_users`, { method: "DELETE" });
  expect(removed.status).toBe(403);
  expect(await removed.json()).toMatchObject({ error: "forbidden" });
  expect((await ask(notes.url, { user: ann })).status).toBe(200);
  for (const name of ["_replicator", "_global_changes"]) {
    for (const method of ["PUT", "DELETE"]) {
      const answer = await ask(`${notes.url}/${name}`, { method });
      expect(answer.status).toBe(501);
    }
  }
});

/** Reads the lines of a continuous feed; `ended` resolves with all of them when the feed ends. */
async function follow(
  vault: string,
  user: Named,
): Promise<{
  readonly lines: readonly string[];
  readonly ended: Promise<readonly string[]>;
}> {
  const answer = await ask(
    `${vault}/_changes?feed=continuous&since=0&heartbeat=60000`,
    { user },
  );
  expect(answer.status).toBe(200);
  const lines: string[] = [];
  const decoder = new TextDecoder();
  const read = async (): Promise<readonly string[]> => {
    for await (const chunk of answer.body!) {
      const text = decoder.decode(chunk as Uint8Array, { stream: true });
      lines.push(...text.split("\n").filter((line) => line !== ""));
    }
    return lines;
  };
  return { lines, ended: read() };
}

const rules = (names: readonly string[]): unknown => ({
  admins: { names: [], roles: ["_admin"] },
  members: { names, roles: names.length === 0 ? ["_admin"] : [] },
});

let vaults = 0;

/** The address of a vault of one test, for these members. */
async function newVault(
  members: readonly Named[],
  at: NotesProcess = notes,
): Promise<string> {
  const vault = `${at.url}/vault-${++vaults}`;
  await ask(vault, { method: "PUT" });
  await secure(
    vault,
    members.map(({ name }) => name),
  );
  return vault;
}

async function secure(vault: string, names: readonly string[]): Promise<void> {
  const answer = await ask(`${vault}/_security`, {
    method: "PUT",
    json: rules(names),
  });
  expect(answer.status).toBe(200);
}

test.each([
  [
    "a new password",
    async (ann: Named) => await save({ ...ann, password: "new" }),
  ],
  [
    "the deletion of the user",
    async ({ name }: Named) => await removeUser(name),
  ],
  [
    "closed access rules",
    async (_ann: Named, vault: string) => await secure(vault, []),
  ],
])("an open feed ends after: %s", async (_why, revoke) => {
  const ann = await newUser();
  const vault = await newVault([ann, await newUser()]);
  const write = (id: string): Promise<Response> =>
    ask(`${vault}/${id}`, { method: "PUT", json: {} });
  await write("before");
  const feed = await follow(vault, ann);
  const longpoll = await ask(
    `${vault}/_changes?feed=longpoll&since=now&heartbeat=60000`,
    { user: ann },
  );
  await revoke(ann, vault);
  await write("after");
  const lines = await feed.ended;
  expect(lines.some((line) => line.includes('"before"'))).toBe(true);
  expect(lines.some((line) => line.includes('"after"'))).toBe(false);
  expect(lines.at(-1)).toContain("last_seq");
  expect(await longpoll.json()).toMatchObject({ results: [] });
  expect([401, 403]).toContain((await ask(vault, { user: ann })).status);
});

test("no change after a new password reaches the user's feed, however many feeds are open", async () => {
  const users = [];
  while (users.length < 40) {
    users.push(await newUser());
  }
  const vault = await newVault(users);
  const feeds = [];
  for (const user of users) {
    feeds.push(await follow(vault, user));
  }
  await save({ ...users.at(-1)!, password: "new" });
  await ask(`${vault}/after`, { method: "PUT", json: {} });
  const lines = await feeds.at(-1)!.ended;
  expect(lines.some((line) => line.includes('"after"'))).toBe(false);
  // A feed that is sending the change when its access ends is cut off.
  const ended = Promise.allSettled(feeds.map((feed) => feed.ended));
  await secure(vault, []);
  await ended;
});

test("feeds of other users stay open when one user gets a new password", async () => {
  const [ann, bea] = [await newUser(), await newUser()];
  const vault = await newVault([ann, bea]);
  const feed = await follow(vault, bea);
  await save({ ...ann, password: "new" });
  await ask(`${vault}/after`, { method: "PUT", json: {} });
  await expect
    .poll(() => feed.lines.some((line) => line.includes('"after"')), {
      timeout: 60_000,
    })
    .toBe(true);
  await save({ ...bea, password: "new" });
  await feed.ended;
});

/** Sends a request whose password waits behind guesses to be checked, and makes a change meanwhile. Returns the whole response. */
async function askDuring(
  change: () => Promise<void>,
  address: string,
  user: Named,
): Promise<string> {
  const guess = (index: number): Promise<Response> =>
    ask(slow.url, { user: { name: `${user.name}-${index}`, password: "no" } });
  // Names that were looked up before enter the queue without delay.
  await Promise.all(times(9, guess));
  const guesses = times(9, guess);
  const answer = ask(address, { user });
  await change();
  await Promise.all(guesses);
  return await (await answer).text();
}

test("a password that is replaced while it is being checked gets no later change", async () => {
  const ann = await newUser(slow);
  const vault = await newVault([ann], slow);
  const changes = await askDuring(
    async () => {
      await save({ ...ann, password: "new" }, slow);
      await ask(`${vault}/after`, { method: "PUT", json: {} });
    },
    `${vault}/_changes?feed=continuous&timeout=1000`,
    ann,
  );
  expect(changes).not.toContain("after");

  const second = { name: "second", password: "not-a-secret-second" };
  await saveAdmin(second, slow);
  const updates = await askDuring(
    async () => {
      await saveAdmin({ ...second, password: "new" }, slow);
      await ask(`${slow.url}/after`, { method: "PUT" });
    },
    `${slow.url}/_db_updates?feed=continuous&timeout=1000`,
    second,
  );
  expect(updates).not.toContain("after");
});

test("a new password ends the user's feeds after the thread of _users was replaced", async () => {
  const store = await startNotes(
    `${testIni()}\n[hearth]\nwatchdog_seconds=1\n`,
  );
  try {
    const ann = await newUser(store);
    const written = await newVault([ann], store);
    const unchanged = await newVault([ann], store);
    const feeds = [await follow(written, ann), await follow(unchanged, ann)];
    const users = `${store.url}/_users`;
    // Another process locks the file: the thread does not respond and is replaced.
    const other = new DatabaseSync(
      join(store.directory, "data", "databases", "_users.sqlite"),
    );
    other.exec("BEGIN IMMEDIATE");
    const hanging = await ask(`${users}/_revs_limit`, {
      method: "PUT",
      json: 1000,
    });
    expect(hanging.status).toBe(503);
    other.exec("ROLLBACK");
    other.close();
    // The account of the admin, who alone sends requests from here on, is not in _users.
    await expect
      .poll(async () => (await ask(users)).status, { timeout: 60_000 })
      .toBe(200);
    await save({ ...ann, password: "new" }, store);
    await ask(`${written}/after`, { method: "PUT", json: {} });
    const [lines] = await Promise.all(feeds.map(({ ended }) => ended));
    expect(lines!.some((line) => line.includes('"after"'))).toBe(false);
  } finally {
    await store.stop();
  }
});

test.each([
  ["PUT", "_node/_local/_config/admins/third", ['"not-a-', 'secret"']],
  ["POST", "_dbs_info", ['{"keys":', "[]}"]],
  ["POST", "_utils/compact", ["database=", "_users"]],
] as const)(
  "an admin's new password ends a request whose body is still arriving: %s %s",
  async (method, path, parts) => {
    const second = { name: "second", password: "not-a-secret-second" };
    await saveAdmin(second);
    const request = await askInParts(
      `${notes.url}/${path}`,
      { method, user: second },
      parts,
    );
    await saveAdmin({ ...second, password: "new" });
    expect((await request.finish()).status).toBe(401);
    const third = `${notes.url}/_node/_local/_config/admins/third`;
    expect((await ask(third)).status).toBe(404);
  },
);

async function removeUser(name: string): Promise<void> {
  const address = `${notes.url}/_users/org.couchdb.user:${name}`;
  const { _rev } = (await (await ask(address)).json()) as { _rev: string };
  const removed = await ask(`${address}?rev=${_rev}`, { method: "DELETE" });
  expect(removed.status).toBe(200);
}

// Last: the admin's further mistakes are rejected.
test("guesses of others do not lock out an admin who has logged in from the same address", async () => {
  expect((await ask(notes.url)).status).toBe(200);
  const wrong = { name: admin.name, password: "wrong" };
  const guesses = times(30, () => ask(notes.url, { user: wrong }));
  expect(await count(guesses)).toEqual({ 401: 5, 403: 25 });
  expect((await ask(notes.url)).status).toBe(200);
  const other = { name: admin.name, password: "another" };
  expect((await ask(notes.url, { user: other })).status).toBe(403);
});
