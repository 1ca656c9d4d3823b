import { once } from "node:events";
import { readdirSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeSmallDisk } from "../servers/small-disk.ts";
import { admin, ask, startNotes, type NotesProcess } from "./start-notes.ts";

const disk = makeSmallDisk(48);
disk?.remove();

describe.skipIf(disk === undefined)("on a full disk", () => {
  let small: NonNullable<typeof disk>;
  let notes: NotesProcess;
  let agent: Agent;

  beforeAll(async () => {
    small = makeSmallDisk(48)!;
    notes = await startNotes(undefined, small.path);
    agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const made = await ask(`${notes.url}/vault`, { method: "PUT" });
    expect(made.status).toBe(201);
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
    // Without a length the body goes out in chunks.
    if (body !== undefined && headers["transfer-encoding"] === undefined)
      outgoing.setHeader("content-length", body.length);
    outgoing.end(body);
    const [incoming] = await once(outgoing, "response");
    let text = "";
    for await (const piece of incoming) text += String(piece);
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
    "a body %s is answered, and the connection goes on",
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

  test("a write is accepted again once there is room", async () => {
    expect((await send("PUT", "/vault/a", large)).status).toBe(507);
    small.free();
    expect((await send("PUT", "/vault/a", large)).status).toBe(201);
  });
});
