import { afterAll, beforeAll, expect, test } from "vitest";
import {
  admin,
  ask,
  startNotes,
  testIni,
  type NotesProcess,
} from "./start-notes.ts";

let notes: NotesProcess;

beforeAll(async () => {
  notes = await startNotes(testIni());
  await save("not-a-secret-ann");
});

afterAll(async () => {
  await notes.stop();
});

const address = (): string => `${notes.url}/_users/org.couchdb.user:ann`;

async function save(password: string): Promise<void> {
  const { _rev } = (await (await ask(address())).json()) as { _rev?: string };
  const saved = await ask(address(), {
    method: "PUT",
    json: {
      name: "ann",
      password,
      roles: [],
      type: "user",
      ...(_rev && { _rev }),
    },
  });
  expect(saved.status).toBe(201);
}

async function logIn(name: string, password: string): Promise<string> {
  const answer = await fetch(`${notes.url}/_session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name, password }),
  });
  expect(answer.status).toBe(200);
  return answer.headers.get("set-cookie")!.split(";")[0]!;
}

const withCookie = (cookie: string, path = "/_session"): Promise<Response> =>
  fetch(notes.url + path, { headers: { cookie } });

test("a cookie replaces the name and password until the password changes", async () => {
  const cookie = await logIn("ann", "not-a-secret-ann");
  const session = await withCookie(cookie);
  expect(await session.json()).toMatchObject({
    userCtx: { name: "ann", roles: [] },
    info: { authenticated: "cookie" },
  });
  expect((await withCookie(cookie, "/_all_dbs")).status).toBe(401);
  await save("not-a-secret-new");
  expect((await withCookie(cookie)).status).toBe(401);
});

test("an admin's cookie is sufficient for a complete backup: changes and documents", async () => {
  const cookie = await logIn(admin.name, admin.password);
  await ask(`${notes.url}/saved`, { method: "PUT" });
  await ask(`${notes.url}/saved/a`, { method: "PUT", json: { n: 1 } });
  const changes = await withCookie(
    cookie,
    "/saved/_changes?seq_interval=10000",
  );
  const { results } = (await changes.json()) as { results: { id: string }[] };
  const got = await fetch(`${notes.url}/saved/_bulk_get?revs=true`, {
    method: "POST",
    headers: { cookie, "content-type": "application/json" },
    body: JSON.stringify({ docs: results.map(({ id }) => ({ id })) }),
  });
  expect(await got.json()).toMatchObject({
    results: [{ id: "a", docs: [{ ok: { n: 1 } }] }],
  });
});

test.each([true, false])(
  "an attachment and a design document are rejected without rejecting their batch (new_edits %s)",
  async (newEdits) => {
    const name = newEdits ? "restored" : "replicated";
    await ask(`${notes.url}/${name}`, { method: "PUT" });
    const rev = newEdits ? {} : { _rev: "1-a" };
    const written = await ask(`${notes.url}/${name}/_bulk_docs`, {
      json: {
        new_edits: newEdits,
        docs: [
          { _id: "a", n: 1, ...rev },
          {
            _id: "b",
            _attachments: { "a.txt": { data: "aGVsbG8=" } },
            ...rev,
          },
          { _id: "_design/c", views: {}, ...rev },
          { _id: "d", _attachments: {}, n: 2, ...rev },
        ],
      },
    });
    expect(written.status).toBe(201);
    const outcomes = (await written.json()) as { id: string; error?: string }[];
    expect(outcomes.filter(({ error }) => error !== undefined)).toMatchObject([
      { id: "b", error: "not_implemented" },
      { id: "_design/c", error: "not_implemented" },
    ]);
    const all = await ask(`${notes.url}/${name}/_all_docs`);
    expect(await all.json()).toMatchObject({
      rows: [{ id: "a" }, { id: "d" }],
    });
  },
);

test("the address of CouchDB's administration page redirects to the store's page", async () => {
  const page = await ask(`${notes.url}/_utils/index.html`);
  expect(new URL(page.url).pathname).toBe("/_utils/");
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
});

test.each([
  [
    "another signature",
    // Not its last character, of which some bits do not count.
    (cookie: string) =>
      cookie.slice(0, -8) +
      (cookie.at(-8) === "A" ? "B" : "A") +
      cookie.slice(-7),
  ],
  [
    "another name",
    () =>
      `AuthSession=${Buffer.from("admin:6B010C1F:x").toString("base64url")}`,
  ],
  ["no signature", (cookie: string) => cookie.slice(0, 30)],
  ["nothing", () => "AuthSession="],
])("a cookie with %s is invalid", async (_what, forge) => {
  const cookie = await logIn(admin.name, admin.password);
  expect((await withCookie(forge(cookie))).status).toBe(401);
});

test("a session is renewed while it is used, and expires after its lifetime", async () => {
  const set = (value: string): Promise<Response> =>
    ask(`${notes.url}/_node/_local/_config/chttpd_auth/timeout`, {
      method: "PUT",
      json: value,
    });
  await set("3");
  try {
    const cookie = await logIn(admin.name, admin.password);
    await expect
      .poll(async () => (await withCookie(cookie)).headers.get("set-cookie"), {
        timeout: 60_000,
        interval: 100,
      })
      .not.toBeNull();
    await expect
      .poll(async () => (await withCookie(cookie)).status, { timeout: 60_000 })
      .toBe(401);
  } finally {
    await set("600");
  }
});

test("only a path on this server is accepted as next", async () => {
  for (const next of ["//evil.example", "https://evil.example", "/\\evil"]) {
    const answer = await fetch(
      `${notes.url}/_session?next=${encodeURIComponent(next)}`,
      {
        method: "POST",
        redirect: "manual",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(admin),
      },
    );
    expect(answer.status).toBe(400);
  }
});
