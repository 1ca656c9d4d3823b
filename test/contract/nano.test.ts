import nano, { type DocumentScope, type ServerScope } from "nano";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serversUnderTest, type RunningServer } from "./server-under-test.ts";

interface Note {
  readonly type: string;
  readonly size: number;
}

// CouchDB's own client for Node, as administrators use it in scripts.
describe.each(serversUnderTest())("nano against $name", ({ start }) => {
  let server: RunningServer;
  let couch: ServerScope;
  let notes: DocumentScope<Note>;

  beforeAll(async () => {
    server = await start();
    couch = nano(withPassword(server));
    await couch.db.create("probe-nano");
    notes = couch.db.use<Note>("probe-nano");
  });

  afterAll(async () => {
    await couch?.db.destroy("probe-nano");
    await server?.stop();
  });

  test("the session names the administrator, and databases are listed", async () => {
    expect((await couch.session()).userCtx).toMatchObject({
      name: server.admin.name,
      roles: expect.arrayContaining(["_admin"]),
    });
    expect(await couch.db.list()).toContain("probe-nano");
    expect(await couch.db.get("probe-nano")).toMatchObject({
      db_name: "probe-nano",
      doc_count: expect.any(Number),
    });
  });

  test("a document is inserted, read with its revisions, updated and deleted", async () => {
    const first = await notes.insert({ type: "plain", size: 1 }, "one");
    const second = await notes.insert(
      { _id: "one", _rev: first.rev, type: "plain", size: 2 } as Note,
      "one",
    );
    const read = await notes.get("one", { revs_info: true });
    expect(read).toMatchObject({ _rev: second.rev, type: "plain", size: 2 });
    expect(read._revs_info?.map(({ rev }) => rev)).toEqual([
      second.rev,
      first.rev,
    ]);
    await notes.destroy("one", second.rev);
    await expect(notes.get("one")).rejects.toMatchObject({
      statusCode: 404,
      error: "not_found",
      reason: "deleted",
    });
  });

  test("an update without the current revision is a conflict", async () => {
    await notes.insert({ type: "plain", size: 1 }, "two");
    await expect(
      notes.insert({ type: "plain", size: 2 }, "two"),
    ).rejects.toMatchObject({ statusCode: 409, error: "conflict" });
  });

  test("documents written in bulk are fetched by key, found by selector and listed as changes", async () => {
    const written = await notes.bulk({
      docs: [1, 2, 3].map((size) => ({
        _id: `many-${size}`,
        type: "leaf",
        size,
      })),
    });
    expect(written.map(({ error }) => error)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    const { rows } = await notes.fetch({ keys: ["many-2", "absent"] });
    expect(rows).toMatchObject([
      { id: "many-2", doc: { size: 2 } },
      { key: "absent", error: "not_found" },
    ]);
    const { docs } = await notes.find({
      selector: { type: "leaf", size: { $gt: 1 } },
      limit: 10,
    });
    expect(docs.map(({ _id }) => _id).sort()).toEqual(["many-2", "many-3"]);
    const { results } = await notes.changes({ include_docs: true });
    expect(results.map(({ id }) => id)).toEqual(
      expect.arrayContaining(["many-1", "many-2", "many-3"]),
    );
  });

  test("compaction is accepted, and a wrong password is rejected", async () => {
    expect(await couch.db.compact("probe-nano")).toMatchObject({ ok: true });
    const stranger = nano(
      withPassword({
        ...server,
        admin: { name: server.admin.name, password: "not-a-secret-wrong" },
      }),
    );
    await expect(stranger.db.list()).rejects.toMatchObject({
      statusCode: 401,
      error: "unauthorized",
    });
  });
});

function withPassword({ url, admin }: RunningServer): string {
  const address = new URL(url);
  address.username = admin.name;
  address.password = admin.password;
  return address.href.replace(/\/$/, "");
}
