import { createServer, type Server } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serversUnderTest } from "../../test/contract/server-under-test.ts";
import { ask } from "../../test/contract/start-notes.ts";
import { listen } from "../../test/servers/ports.ts";
import {
  openNotesTestbed,
  type NotesTestbed,
} from "../../test/supervisor/notes-testbed.ts";
import { CouchRefusal, NoAnswer, openCouch } from "./couch.ts";

describe.each(serversUnderTest())("on $name", (under) => {
  let testbed: NotesTestbed;
  beforeAll(async () => {
    testbed = await openNotesTestbed(under);
  });
  afterAll(() => testbed.close());

  const admin = (password: string) =>
    ask(`${testbed.server.url}/_all_dbs`, {
      user: { name: testbed.server.admin.name, password },
    });

  test("frequent and concurrent requests with a stale password do not lock the admin out", async () => {
    let password = "stale-password";
    let clock = 1_800_000_000_000;
    const couch = openCouch({
      url: testbed.server.url,
      admin: testbed.server.admin.name,
      password: () => password,
      now: () => clock,
    });
    const many = () =>
      Promise.allSettled(
        Array.from({ length: 20 }, () => couch.ask("GET", "/_all_dbs")),
      );
    for (const result of await many()) {
      expect(result).toMatchObject({
        status: "rejected",
        reason: { message: expect.stringContaining("password") as string },
      });
    }
    // In the next ten minutes it is tried only once.
    for (let minute = 0; minute < 10; minute += 1) {
      await many();
      clock += 55_000;
    }
    expect((await admin(testbed.server.admin.password)).status).toBe(200);

    // A new password is used immediately.
    password = testbed.server.admin.password;
    expect(await couch.ask("GET", "/_all_dbs")).toBeInstanceOf(Array);
  });

  test("a rejected request is reported with the store's reason", async () => {
    const refused = testbed.couch.ask("PUT", "/Bad-Name");
    await expect(refused).rejects.toBeInstanceOf(CouchRefusal);
    await expect(refused).rejects.toMatchObject({
      status: 400,
      code: "illegal_database_name",
    });
    expect(await testbed.couch.find("/vault-nowhere")).toBeUndefined();
  });
});

test("a lockout caused by others' wrong passwords is retried after seconds, not minutes", async () => {
  let locked = true;
  const store = createServer((_request, response) => {
    response.writeHead(locked ? 403 : 200, {
      "content-type": "application/json",
    });
    response.end(
      locked
        ? '{"error":"forbidden","reason":"Account is temporarily locked due to multiple authentication failures"}'
        : "[]",
    );
  });
  const port = await listen(store);
  try {
    let clock = 1_800_000_000_000;
    const couch = openCouch({
      url: `http://127.0.0.1:${port}`,
      password: () => "not-a-secret",
      now: () => clock,
    });
    for (let attempt = 0; attempt < 5; attempt += 1) {
      await expect(couch.ask("GET", "/_all_dbs")).rejects.toThrow(
        "has locked the admin out for up to five minutes",
      );
      clock += 6000;
    }
    locked = false;
    expect(await couch.ask("GET", "/_all_dbs")).toEqual([]);
  } finally {
    store.close();
  }
});

describe("a store that does not answer", () => {
  let silent: Server;
  let url: string;
  beforeAll(async () => {
    silent = createServer((request, response) => {
      if (request.url === "/_session") {
        response.end("{}");
      } else if (request.url === "/broken") {
        response.writeHead(200, { "content-length": 1000 }).write("{");
        setTimeout(() => response.destroy(), 20);
      } else if (request.url === "/page") {
        response.end("<html>");
      }
    });
    url = `http://127.0.0.1:${await listen(silent)}`;
  });
  afterAll(() => {
    silent.closeAllConnections();
    silent.close();
  });
  const couch = () => openCouch({ url, password: () => "any" });

  test("fails at its deadline, with a message", async () => {
    const answer = couch().ask("GET", "/silence", { timeoutMs: 1000 });
    await expect(answer).rejects.toBeInstanceOf(NoAnswer);
    await expect(answer).rejects.toThrow("no answer within 1 s");
  });

  test("a truncated answer counts as no answer", async () => {
    await expect(couch().ask("GET", "/broken")).rejects.toBeInstanceOf(
      NoAnswer,
    );
  });

  test("a page of another server is not accepted as a CouchDB", async () => {
    await expect(couch().ask("GET", "/page")).rejects.toThrow(
      "the server at this address is not a CouchDB",
    );
  });

  test("an aborted request rejects with the reason of the abort", async () => {
    const stop = new AbortController();
    const answer = couch().ask("GET", "/silence", { signal: stop.signal });
    stop.abort(new Error("stop requested"));
    await expect(answer).rejects.toThrow("stop requested");
  });

  test("a refused connection is reported with the address", async () => {
    const away = openCouch({
      url: "http://127.0.0.1:1",
      password: () => "any",
    });
    await expect(away.ask("GET", "/")).rejects.toThrow(
      "the notes store at http://127.0.0.1:1 does not respond (ECONNREFUSED)",
    );
  });
});
