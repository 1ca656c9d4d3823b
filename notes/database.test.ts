import { getEventListeners } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openDatabase, type Database } from "./database.ts";
import { answerChanges } from "./feeds.ts";
import { sendAnswer, type DatabaseExchange } from "./http/exchange.ts";
import { readTarget } from "./http/target.ts";
import { listen } from "../test/servers/ports.ts";

const MAX_DOCUMENT_SIZE = 1_000_000;
let directory: string;
let database: Database;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "hearth-notes-database-"));
  database = await openDatabase(
    {
      name: "vault",
      file: join(directory, "vault.sqlite"),
      kind: "vault",
      instanceStartTime: "1700000000",
      spoolDirectory: directory,
      passwordIterations: 1,
    },
    {
      changed: () => undefined,
      readOnly: () => undefined,
      compacted: () => undefined,
      failed: () => undefined,
      hung: () => undefined,
    },
  );
});

afterEach(async () => {
  await database.close();
  rmSync(directory, { recursive: true });
});

/** Answers one request to this path and returns the listeners that still wait for the client to disconnect. */
async function leftAfter(
  method: string,
  address: string,
  answer: (exchange: DatabaseExchange) => Promise<void>,
): Promise<number> {
  const { signal: gone } = new AbortController();
  const server = createServer((request, response) => {
    const target = readTarget(request.url ?? "/");
    const user = { name: "admin", roles: ["_admin"] };
    const login = {
      user,
      by: "default",
      onEnd: () => () => undefined,
      isCurrent: () => Promise.resolve(true),
    };
    void answer({
      request,
      response,
      method,
      target,
      user,
      login,
      gone,
      database,
    } as DatabaseExchange);
  });
  const port = await listen(server);
  try {
    const answered = await fetch(`http://127.0.0.1:${port}${address}`, {
      method,
    });
    expect(answered.status).toBe(200);
    await answered.arrayBuffer();
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
  return getEventListeners(gone, "abort").length;
}

test.each(["GET", "HEAD"])("%s leaves no call pending", async (method) => {
  expect(
    await leftAfter(method, "/vault/_all_docs", async (exchange) =>
      sendAnswer(
        exchange,
        await database.call(
          {
            operation: "allDocs",
            query: {},
            maxDocumentSize: MAX_DOCUMENT_SIZE,
          },
          exchange.gone,
        ),
      ),
    ),
  ).toBe(0);
  expect(
    await leftAfter(method, "/vault/_changes", (exchange) =>
      answerChanges(
        exchange,
        undefined,
        new AbortController().signal,
        MAX_DOCUMENT_SIZE,
      ),
    ),
  ).toBe(0);
});
