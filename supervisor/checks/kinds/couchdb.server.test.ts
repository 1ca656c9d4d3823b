import { createServer, type Server } from "node:http";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  serversUnderTest,
  type RunningServer,
} from "../../../test/contract/server-under-test.ts";
import { probeCheck } from "../../../test/supervisor/probe-check.ts";
import { listen } from "../../../test/servers/ports.ts";

describe.each(serversUnderTest())("on $name", (under) => {
  let store: RunningServer;

  beforeEach(async () => {
    store = await under.start();
  });
  afterEach(() => store.stop());

  test("it is up without credentials; sizes and tasks require them", async () => {
    const { url, admin } = store;
    expect(await probeCheck({ kind: "couchdb", url })).toMatchObject({
      ok: true,
      text: "up",
    });
    const { name: user, password } = admin;
    const result = await probeCheck({ kind: "couchdb", url, user, password });
    expect(result).toMatchObject({ ok: true });
    expect(result.text).toMatch(/^up; \d+ databases?, \d+ \w+ on disk/);
    expect(result.text).toMatch(/no active tasks$/);
    expect(result.measures["file_bytes"]).toBeGreaterThan(0);
  });

  test("a stale password is sent only once, so that nobody is locked out", async () => {
    const { url, admin } = store;
    const stale = { user: admin.name, password: "stale" };
    for (let attempt = 0; attempt < 8; attempt += 1) {
      expect(
        await probeCheck({ kind: "couchdb", url, ...stale }),
      ).toMatchObject({
        ok: false,
        level: "warning",
        text: expect.stringContaining("was rejected"),
      });
    }
    const { name: user, password } = admin;
    expect(
      await probeCheck({ kind: "couchdb", url, user, password }),
    ).toMatchObject({ ok: true });
  });
});

describe("an unhealthy server", () => {
  let server: Server;
  let requests: string[];
  let url: string;

  beforeEach(async () => {
    requests = [];
    server = createServer((request, response) => {
      requests.push(request.url ?? "");
      response.writeHead(404).end('{"status":"maintenance_mode"}');
    });
    const port = await listen(server);
    url = `http://127.0.0.1:${port}/`;
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  test("its error is reported, without credentials", async () => {
    expect(
      await probeCheck({ kind: "couchdb", url, password: "s3cret" }),
    ).toMatchObject({
      ok: false,
      level: "down",
      text: '/_up answered 404: {"status":"maintenance_mode"}',
    });
    expect(requests).toEqual(["/_up"]);
  });
});

test("a rejected password is tried again after ten minutes, because it may have just been changed", async () => {
  let refuses = true;
  const requests: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url);
    const isRefused = request.url !== "/_up" && refuses;
    response.writeHead(isRefused ? 401 : 200).end("[]");
  });
  const port = await listen(server);
  try {
    const url = `http://127.0.0.1:${port}`;
    const at = (minutes: number) =>
      probeCheck(
        { kind: "couchdb", url, password: "the new one" },
        { now: minutes * 60_000 },
      );
    expect(await at(0)).toMatchObject({ ok: false, level: "warning" });
    refuses = false;
    requests.length = 0;
    expect(await at(9)).toMatchObject({ ok: false });
    expect(requests).toEqual(["/_up"]);
    expect(await at(10)).toMatchObject({ ok: true });
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
