import { once } from "node:events";
import { readdirSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createSmallDisk } from "../servers/small-disk.ts";
import { admin, ask, startNotes, type NotesProcess } from "./start-notes.ts";

const disk = createSmallDisk(48);
disk?.remove();

describe.skipIf(disk === undefined)("on a full disk", () => {
  let small: NonNullable<typeof disk>;
  let notes: NotesProcess;
  let agent: Agent;

  beforeAll(async () => {
    small = createSmallDisk(48)!;
    notes = await startNotes(undefined, small.path);
    agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const created = await ask(`${notes.url}/vault`, { method: "PUT" });
    expect(created.status).toBe(201);
    const kept = await send("PUT", "/vault/kept", Buffer.from('{"n":1}'));
    expect(kept.status).toBe(201);
    small.fill();
  });

  afterAll(async () => {
    agent.destroy();
    await notes.stop();
    small.remove();
  });

  const send = async (
    method: string,
    path: string,
    body: Buffer | undefined,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<{ status: number; text: string; socket: number }> => {
    const outgoing = request(`${notes.url}${path}`, {
      method,
      agent,
      headers: {
        authorization: `Basic ${Buffer.from(`${admin.name}:${admin.password}`).toString("base64")}`,
        "content-type": "application/json",
        ...headers,
      },
    });
    // Without a length the body is sent in chunks.
    if (body !== undefined && headers["transfer-encoding"] === undefined) {
      outgoing.setHeader("content-length", body.length);
    }
    outgoing.end(body);
    const [incoming] = await once(outgoing, "response");
    let text = "";
    for await (const piece of incoming) {
      text += String(piece);
    }
    return {
      status: incoming.statusCode,
      text,
      socket: outgoing.socket?.localPort ?? 0,
    };
  };

  const large = Buffer.from(JSON.stringify({ data: "x".repeat(2_000_000) }));
  const chunked = { "transfer-encoding": "chunked" };

  test.each([
    ["with a length", "PUT", "/vault/a", large, {}, 507],
    ["in chunks", "PUT", "/vault/a", large, chunked, 507],
    [
      "packed",
      "PUT",
      "/vault/a",
      gzipSync(large),
      { "content-encoding": "gzip" },
      507,
    ],
    ["of many documents", "POST", "/vault/_bulk_docs", large, {}, 507],
    ["larger than allowed", "POST", "/_dbs_info", large, chunked, 413],
  ] as const)(
    "a body %s gets a response, and the connection stays open",
    async (_what, method, path, body, headers, status) => {
      const first = await send(method, path, body, headers);
      expect(first.status).toBe(status);
      expect(JSON.parse(first.text)).toHaveProperty("reason");
      const next = await send("GET", "/vault", undefined);
      expect(next.status).toBe(200);
      expect(next.socket).toBe(first.socket);
      expect(readdirSync(join(notes.directory, "data", "spool"))).toEqual([]);
    },
  );

  test("a database that could not be created does not exist, even after a restart", async () => {
    const created = await send("PUT", "/phantom", undefined);
    expect(created.status).toBe(507);
    expect(JSON.parse(created.text)).toMatchObject({
      error: "insufficient_storage",
    });
    expect((await send("GET", "/phantom", undefined)).status).toBe(404);
    const databases = join(notes.directory, "data", "databases");
    notes = await notes.restart();
    agent.destroy();
    const all = await ask(`${notes.url}/_all_dbs`);
    expect(await all.json()).toEqual(["_users", "vault"]);
    const files = readdirSync(databases);
    expect(files.filter((file) => file.includes("phantom"))).toEqual([]);
  });

  test.each(["SIGTERM", "SIGKILL"] as const)(
    "after %s the store starts on the full disk, and its data can be read",
    async (signal) => {
      await notes.kill(signal);
      small.fill();
      notes = await notes.restart();
      const read = await send("GET", "/vault/kept", undefined);
      expect(JSON.parse(read.text)).toMatchObject({ n: 1 });
      // More than a start may free, but small enough not to be spooled to a file.
      const body = JSON.stringify({ data: "x".repeat(500_000) });
      const write = await send("PUT", "/vault/b", Buffer.from(body));
      expect(write.status).toBe(507);
    },
  );

  test("a write is accepted again once there is space", async () => {
    expect((await send("PUT", "/vault/a", large)).status).toBe(507);
    small.free();
    expect((await send("PUT", "/vault/a", large)).status).toBe(201);
  });

  test("a vault without history can be read on a full disk; its history starts once there is space", async () => {
    await notes.kill("SIGTERM");
    const file = new DatabaseSync(
      join(notes.directory, "data", "databases", "vault.sqlite"),
    );
    file.exec(`
      DROP TABLE history;
      ALTER TABLE totals DROP COLUMN recorded_seq;
      DELETE FROM properties WHERE name = 'history_from';
    `);
    file.close();
    small.fill();
    const started = Date.now();
    notes = await notes.restart();
    // A start may free what a request left; the vault is opened by the next one.
    small.fill();
    const read = await send("GET", "/vault/kept", undefined);
    expect(JSON.parse(read.text)).toMatchObject({ n: 1 });
    const reach = await send("GET", "/vault/_history", undefined);
    expect(JSON.parse(reach.text)).toMatchObject({ versions: 0, bytes: 0 });
    const { from } = JSON.parse(reach.text) as { from: number };
    expect(from).toBeGreaterThanOrEqual(started);
    expect((await send("GET", "/vault/_space", undefined)).status).toBe(200);
    await expect
      .poll(() => notes.log.join(""), { timeout: 30_000 })
      .toContain("opened read-only");
    expect((await send("PUT", "/vault/c", large)).status).toBe(507);

    small.free();
    const note = { type: "plain", path: "n.md", mtime: 1, children: [] };
    const put = async (body: object): Promise<string> => {
      const { status, text } = await send(
        ...(["PUT", "/vault/n.md"] as const),
        Buffer.from(JSON.stringify(body)),
      );
      expect(status).toBe(201);
      return (JSON.parse(text) as { rev: string }).rev;
    };
    const _rev = await put(note);
    await put({ ...note, _rev, mtime: 2 });
    const past = await send("GET", "/vault/_history?id=n.md", undefined);
    expect((JSON.parse(past.text) as { rows: unknown[] }).rows).toHaveLength(2);
  });
});

describe.skipIf(disk === undefined)("a large vault on a full disk", () => {
  test("is compacted in the reserved space and syncs again", async () => {
    const small = createSmallDisk(128)!;
    let notes = await startNotes(undefined, small.path);
    const put = async (path: string, document: object): Promise<Response> =>
      ask(`${notes.url}/vault/${path}`, { method: "PUT", json: document });
    const sizes = async (): Promise<{ file: number }> => {
      const info = await ask(`${notes.url}/vault`);
      return ((await info.json()) as { sizes: { file: number } }).sizes;
    };
    const data = "x".repeat(4_000_000);
    try {
      await ask(`${notes.url}/vault`, { method: "PUT" });
      let _rev: string | undefined;
      for (let round = 0; round < 8; round += 1) {
        const answer = await put("large", { data, round, _rev });
        expect(answer.status).toBe(201);
        _rev = ((await answer.json()) as { rev: string }).rev;
      }
      const before = (await sizes()).file;
      // Without a write-ahead log, which takes additional space.
      await notes.kill("SIGTERM");
      small.fill();
      notes = await notes.restart();
      // Space that it freed at its start.
      small.fill();
      expect((await put("other", {})).status).toBe(507);
      const answer = await ask(`${notes.url}/vault/_compact`, {
        method: "POST",
        json: {},
      });
      expect(answer.status).toBe(202);
      await expect
        .poll(async () => (await sizes()).file, { timeout: 60_000 })
        .toBeLessThan(before / 2);
      expect((await put("other", { data })).status).toBe(201);
    } finally {
      await notes.stop();
      small.remove();
    }
  });
});
