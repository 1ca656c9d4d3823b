import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { admin, ask, startNotes, type NotesProcess } from "./start-notes.ts";
import { waitFor } from "../wait-for.ts";

let notes: NotesProcess;

beforeAll(async () => {
  notes = await startNotes();
});

afterAll(async () => {
  await notes.stop();
});

interface Info {
  readonly sizes: { readonly file: number; readonly active: number };
  readonly compact_running: boolean;
  readonly doc_count: number;
  readonly doc_del_count: number;
  readonly update_seq: string;
}

const get = async <T>(path: string): Promise<T> =>
  (await (await ask(notes.url + path)).json()) as T;

const post = async <T>(path: string, json: unknown): Promise<T> =>
  (await (await ask(notes.url + path, { json })).json()) as T;

test("compaction frees space and keeps every leaf", async () => {
  await ask(`${notes.url}/compacted`, { method: "PUT" });
  const hash = (letter: string): string => letter.repeat(32);
  await post("/compacted/_bulk_docs", {
    new_edits: false,
    docs: [
      { _id: "torn", _rev: `1-${hash("a")}`, side: "a" },
      { _id: "torn", _rev: `1-${hash("b")}`, side: "b" },
      { _id: "torn", _rev: `1-${hash("c")}`, side: "c", _deleted: true },
    ],
  });
  const revs = new Map<string, string>();
  for (let round = 0; round < 6; round += 1) {
    const docs = Array.from({ length: 150 }, (_each, index) => {
      const _id = `note-${index}`;
      const _rev = revs.get(_id);
      return {
        _id,
        ...(_rev === undefined ? {} : { _rev }),
        round,
        text: "x".repeat(10_000),
      };
    });
    const written = await post<{ id: string; rev: string }[]>(
      "/compacted/_bulk_docs",
      { docs },
    );
    for (const { id, rev } of written) {
      revs.set(id, rev);
    }
  }
  const first = await get<{ _revisions: { start: number; ids: string[] } }>(
    "/compacted/note-0?revs=true",
  );
  const oldest = `1-${first._revisions.ids.at(-1)!}`;
  const before = await get<Info>("/compacted");
  expect(before.sizes.file - before.sizes.active).toBeGreaterThan(5_000_000);

  const started = await ask(`${notes.url}/compacted/_compact`, { json: {} });
  expect(started.status).toBe(202);
  const after = await waitFor("the end of the compaction", async () => {
    const info = await get<Info>("/compacted");
    return !info.compact_running && info;
  });

  expect(after.sizes.file).toBeLessThan(before.sizes.file / 2);
  expect(after).toMatchObject({
    doc_count: before.doc_count,
    doc_del_count: before.doc_del_count,
    update_seq: before.update_seq,
  });
  const leaves = await get<{ ok: { side: string } }[]>(
    "/compacted/torn?open_revs=all",
  );
  expect(leaves.map((leaf) => leaf.ok.side).sort()).toEqual(["a", "b", "c"]);
  const all = await get<{ rows: { doc: { round?: number } }[] }>(
    "/compacted/_all_docs?include_docs=true&startkey=%22note%22&endkey=%22note~%22",
  );
  expect(new Set(all.rows.map((row) => row.doc.round))).toEqual(new Set([5]));
  // Removed but still known, so that no device sends it again.
  expect(
    (await ask(`${notes.url}/compacted/note-0?rev=${oldest}`)).status,
  ).toBe(404);
  expect(await post("/compacted/_revs_diff", { "note-0": [oldest] })).toEqual(
    {},
  );
});

test("reads of a database and the health check respond while a device pushes 40 MB to it", async () => {
  await ask(`${notes.url}/busy`, { method: "PUT" });
  await ask(`${notes.url}/busy/small`, { method: "PUT", json: { n: 1 } });
  const docs = Array.from({ length: 400 }, (_each, index) => ({
    _id: `h:${index}`,
    type: "leaf",
    data: "x".repeat(100_000),
  }));
  let pushed = false;
  const push = ask(`${notes.url}/busy/_bulk_docs`, { json: { docs } }).then(
    async (answer) => {
      pushed = true;
      return (await answer.json()) as { ok: boolean }[];
    },
  );
  let answered = 0;
  while (!pushed) {
    expect((await fetch(`${notes.url}/_up`)).status).toBe(200);
    expect(await get("/busy/small")).toMatchObject({ n: 1 });
    if (!pushed) {
      answered += 1;
    }
  }
  const outcomes = await push;
  expect(outcomes.every((outcome) => outcome.ok)).toBe(true);
  expect(answered).toBeGreaterThan(3);
});

test("a large gzipped body is unpacked while it is written to disk", async () => {
  await ask(`${notes.url}/packed`, { method: "PUT" });
  const docs = Array.from({ length: 30 }, (_each, index) => ({
    _id: `h:${index}`,
    data: "é".repeat(100_000),
  }));
  const answer = await fetch(`${notes.url}/packed/_bulk_docs`, {
    method: "POST",
    headers: {
      authorization: `Basic ${Buffer.from(`${admin.name}:${admin.password}`).toString("base64")}`,
      "content-type": "application/json",
      "content-encoding": "gzip",
    },
    body: gzipSync(JSON.stringify({ docs })),
  });
  expect(answer.status).toBe(201);
  expect(await get("/packed/h:7")).toMatchObject(docs[7]!);
});

test("documents without an id get one, and later ones sort after earlier ones", async () => {
  await ask(`${notes.url}/made`, { method: "PUT" });
  const ids: string[] = [];
  for (let n = 0; n < 5; n += 1) {
    ids.push((await post<{ id: string }>("/made", { n })).id);
  }
  expect(ids.every((id) => /^[0-9a-f]{32}$/.test(id))).toBe(true);
  expect([...ids].sort()).toEqual(ids);
});

test("the feed of a device that was offline for a week contains every change once", async () => {
  await ask(`${notes.url}/away`, { method: "PUT" });
  const write = async (id: string, rev?: string): Promise<string> => {
    const query = rev === undefined ? "" : `?rev=${rev}`;
    const answer = await ask(`${notes.url}/away/${id}${query}`, {
      method: "PUT",
      json: { at: rev ?? "first" },
    });
    return ((await answer.json()) as { rev: string }).rev;
  };
  const rev = await write("a");
  await write("b");
  const { last_seq: seen } = await get<{ last_seq: string }>("/away/_changes");
  await write("a", rev);
  await write("c");
  const page = await get<{ results: { id: string }[]; pending: number }>(
    `/away/_changes?since=${seen}&limit=1`,
  );
  expect(page.pending).toBe(1);
  const rest = await get<{ results: { id: string }[] }>(
    `/away/_changes?since=${seen}`,
  );
  expect(rest.results.map((row) => row.id)).toEqual(["a", "c"]);
});

test.each(["normal", "descending"])(
  "a waiting feed (%s) ends at its timeout even if the database's access rules change",
  async (direction) => {
    const path = `/quiet-${direction}`;
    await ask(notes.url + path, { method: "PUT" });
    const waiting = get(
      `${path}/_changes?feed=longpoll&timeout=1000&descending=${direction === "descending"}`,
    );
    const security = await ask(`${notes.url}${path}/_security`, {
      method: "PUT",
      json: {
        admins: { names: [], roles: ["_admin"] },
        members: { names: ["ann"], roles: [] },
      },
    });
    expect(security.status).toBe(200);
    expect(await waiting).toMatchObject({ results: [], pending: 0 });
  },
);

test("a revision that would break the JSON of the feed is rejected", async () => {
  await ask(`${notes.url}/revisions`, { method: "PUT" });
  const write = (doc: object) =>
    ask(`${notes.url}/revisions/_bulk_docs`, {
      json: { new_edits: false, docs: [{ _id: "note", ...doc }] },
    });
  for (const hash of ['a"b', "a\\b", "a\nb", "a\u0000b", "a\u007fb"]) {
    for (const doc of [
      { _rev: `1-${hash}` },
      { _rev: "2-b", _revisions: { start: 2, ids: ["b", hash] } },
    ]) {
      const refused = await write(doc);
      expect(refused.status).toBe(400);
      expect(await refused.json()).toEqual({
        error: "bad_request",
        reason: "Invalid rev format",
      });
    }
  }
  expect((await write({ _rev: "1-any text'll do" })).status).toBe(201);
  expect(
    await get(`/revisions/_changes?include_docs=true&style=all_docs`),
  ).toMatchObject({ results: [{ doc: { _rev: "1-any text'll do" } }] });
});

test.for([
  ["multipart/mixed", "multipart/mixed", "multipart/mixed"],
  ["multipart/mixed, */*", "application/json", "multipart/mixed"],
  [
    "multipart/mixed;q=0.9, application/json",
    "application/json",
    "multipart/mixed",
  ],
  ["multipart/related", "multipart/related", "application/json"],
  ["application/json", "application/json", "application/json"],
] as const)(
  "Accept: %s gets %s from _bulk_get and %s for open_revs",
  async ([accept, ofBulkGet, ofOpenRevs]) => {
    const url = `${notes.url}/accepted`;
    await ask(url, { method: "PUT" });
    await ask(`${url}/note`, { method: "PUT", json: { a: 1 } });
    const type = async (path: string, json?: unknown): Promise<string> => {
      const headers = { accept };
      const answer = await ask(url + path, {
        headers,
        ...(json === undefined ? {} : { json }),
      });
      await answer.arrayBuffer();
      return (answer.headers.get("content-type") ?? "").split(";")[0]!;
    };
    expect(await type("/_bulk_get", { docs: [{ id: "note" }] })).toBe(
      ofBulkGet,
    );
    expect(await type("/note?open_revs=all")).toBe(ofOpenRevs);
  },
);

test("a revision of any text is the document's ETag", async () => {
  const url = `${notes.url}/any-text`;
  await ask(url, { method: "PUT" });
  const written = await ask(`${url}/note?new_edits=false`, {
    method: "PUT",
    json: { _rev: "1-日本" },
  });
  expect(written.status).toBe(201);
  const etag = written.headers.get("etag") ?? "";
  expect(Buffer.from(etag, "latin1").toString()).toBe('"1-日本"');
  const read = await ask(`${url}/note`);
  expect(read.headers.get("etag")).toBe(etag);
  expect(await read.json()).toEqual({ _id: "note", _rev: "1-日本" });
  const again = await ask(`${url}/note`, {
    headers: { "if-none-match": etag },
  });
  expect(again.status).toBe(304);
  const edited = await ask(`${url}/note`, {
    method: "PUT",
    json: { a: 1 },
    headers: { "if-match": etag },
  });
  expect(edited.status).toBe(201);
});

test("an edit that names two different revisions changes nothing", async () => {
  const url = `${notes.url}/two-names`;
  await ask(url, { method: "PUT" });
  const written = await ask(`${url}/note`, { method: "PUT", json: {} });
  const { rev } = (await written.json()) as { rev: string };
  const headers = { "if-match": '"1-abc"' };
  for (const answer of [
    await ask(`${url}/note?rev=${rev}`, { method: "PUT", json: {}, headers }),
    await ask(`${url}/note`, { method: "PUT", json: { _rev: rev }, headers }),
    await ask(`${url}/note?rev=${rev}`, { method: "DELETE", headers }),
  ]) {
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      reason: "Document rev and etag have different values",
    });
  }
  expect(await (await ask(`${url}/note`)).json()).toMatchObject({ _rev: rev });
});

test("the administration page shows each database and compacts one, for the server's admin only", async () => {
  await ask(`${notes.url}/shown`, { method: "PUT" });
  const [left, right] = ["a", "b"].map((letter) => ({
    _id: "torn <b>",
    _rev: `1-${letter.repeat(32)}`,
  }));
  await post("/shown/_bulk_docs", { new_edits: false, docs: [left, right] });
  const page = await ask(`${notes.url}/_utils`);
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  const text = (await page.text()).replace(/\s+/g, " ");
  expect(text).toContain("shown: 1 conflicted note");
  expect(text).toContain('value="shown"');
  expect(text).not.toMatch(/https?:\/\//);

  expect((await fetch(`${notes.url}/_utils`)).status).toBe(401);
  const compact = async (headers: Record<string, string>): Promise<number> => {
    const answer = await fetch(`${notes.url}/_utils/compact`, {
      method: "POST",
      redirect: "manual",
      headers: {
        authorization: `Basic ${Buffer.from(`${admin.name}:${admin.password}`).toString("base64")}`,
        "content-type": "application/x-www-form-urlencoded",
        ...headers,
      },
      body: "database=shown",
    });
    return answer.status;
  };
  expect(await compact({ origin: notes.url })).toBe(303);
  expect(await compact({ origin: "https://evil.example" })).toBe(403);
  expect(await compact({ "sec-fetch-site": "cross-site" })).toBe(403);
});

test("a request above the server's limit is rejected before it is read", async () => {
  const set = async (value: string): Promise<void> => {
    await ask(
      `${notes.url}/_node/_local/_config/chttpd/max_http_request_size`,
      {
        method: "PUT",
        json: value,
      },
    );
  };
  await ask(`${notes.url}/limited`, { method: "PUT" });
  await set("1000");
  try {
    const answer = await ask(`${notes.url}/limited/big`, {
      method: "PUT",
      json: { data: "x".repeat(2000) },
    });
    expect(answer.status).toBe(413);
    expect(await answer.json()).toMatchObject({ error: "too_large" });
  } finally {
    await set("4294967296");
  }
});

test("a local document is the same whether its slash is escaped or not", async () => {
  await ask(`${notes.url}/local`, { method: "PUT" });
  const escaped = `${notes.url}/local/_local%2Fa`;
  await ask(escaped, { method: "PUT", json: { n: 1 } });
  const document = { _id: "_local/a", _rev: "0-1", n: 1 };
  expect(await (await ask(escaped)).json()).toEqual(document);
  expect(await get("/local/_local/a")).toEqual(document);
  expect((await ask(escaped, { method: "DELETE" })).status).toBe(200);
  expect((await ask(`${notes.url}/local/_local/a`)).status).toBe(404);
});

test("a list of chunks to collect may be longer than a query", async () => {
  await ask(`${notes.url}/collected`, { method: "PUT" });
  const list = { notesSeq: 0, unused: [], before: 0, readUpTo: 0, free: false };
  const send = async (path: string): Promise<number> =>
    (
      await fetch(notes.url + path, {
        method: "POST",
        headers: {
          authorization: `Basic ${Buffer.from(`${admin.name}:${admin.password}`).toString("base64")}`,
          "content-type": "application/json",
        },
        // White space, instead of half a million ids.
        body: JSON.stringify(list).padEnd(10_000_000),
      })
    ).status;
  expect(await send("/collected/_collect")).toBe(200);
  expect(await send("/collected/_all_docs")).toBe(413);
});

test("LiveSync's script for a new CouchDB finds the server set up, and its settings are accepted", async () => {
  const setup = (user = admin) =>
    ask(`${notes.url}/_cluster_setup`, {
      method: "POST",
      user,
      json: { action: "enable_single_node", singlenode: true },
    });
  const answer = await setup();
  expect(answer.status).toBe(400);
  expect(await answer.json()).toEqual({
    error: "bad_request",
    reason: "Cluster is already finished",
  });
  const member = { name: "cluster", password: "not-a-secret-member" };
  await ask(`${notes.url}/_users/org.couchdb.user:${member.name}`, {
    method: "PUT",
    json: { ...member, type: "user", roles: [] },
  });
  expect((await setup(member)).status).toBe(401);
  // Its earlier form names the node of CouchDB's image.
  for (const node of ["_local", "nonode@nohost"]) {
    const setting = `${notes.url}/_node/${node}/_config/chttpd/enable_cors`;
    const set = await ask(setting, { method: "PUT", json: "true" });
    expect(set.status).toBe(200);
  }
});

test("a feature of CouchDB that the store lacks is named instead of an error of JSON, or of another meaning", async () => {
  const lacking = async (path: string, request: Parameters<typeof ask>[1]) => {
    const answer = await ask(`${notes.url}/lacking${path}`, request);
    expect(answer.status).toBe(501);
    return ((await answer.json()) as { reason: string }).reason;
  };
  await ask(`${notes.url}/lacking`, { method: "PUT" });
  const parts = { "content-type": 'multipart/related; boundary="p"' };
  expect(await lacking("/a", { method: "PUT", headers: parts })).toMatch(
    /^Attachments are not supported/,
  );
  const together = { all_or_nothing: true, docs: [{ _id: "a" }] };
  expect(await lacking("/_bulk_docs", { json: together })).toMatch(
    /^all_or_nothing is not supported/,
  );
  expect(await lacking("/_changes?filter=_view&view=a/b", {})).toMatch(
    /use filter=_selector/,
  );
  expect(await get<Info>("/lacking")).toMatchObject({ doc_count: 0 });
});
