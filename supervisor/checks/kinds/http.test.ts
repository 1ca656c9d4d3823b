import { createServer, type Server } from "node:http";
import { afterEach, expect, test } from "vitest";
import { freePort, listen } from "../../../test/servers/ports.ts";
import { probeCheck } from "../../../test/supervisor/probe-check.ts";

let server: Server | undefined;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

/** A server with this answer; it never answers if `answer` is "hang". */
async function serve(
  answer: { readonly status: number; readonly body: string } | "hang",
): Promise<number> {
  server = createServer((_request, response) => {
    if (answer !== "hang") {
      response.writeHead(answer.status).end(answer.body);
    }
  });
  return listen(server);
}

test.each([
  [{}, { status: 200, body: "" }, true, "answered 200"],
  [{ status: 204 }, { status: 204, body: "" }, true, "answered 204"],
  [
    {},
    { status: 503, body: "the database\nis away" },
    false,
    "answered 503, expected 200: the database is away",
  ],
  [
    { json: { db: "connected" } },
    { status: 200, body: '{"db":"connected"}' },
    true,
    "answered 200",
  ],
  [
    { json: { db: "connected" } },
    { status: 200, body: '{"db":"away"}' },
    false,
    'db is "away", expected "connected"',
  ],
  [
    { json: { db: "connected" } },
    { status: 200, body: "{}" },
    false,
    'db is missing, expected "connected"',
  ],
  [
    { json: { db: "connected" } },
    { status: 200, body: "hello" },
    false,
    "the answer is not JSON",
  ],
])("expecting %j, the answer %j is %s", async (expect_, answer, ok, text) => {
  const url = `http://127.0.0.1:${await serve(answer)}/`;
  expect(
    await probeCheck({ kind: "http", url, expect: expect_ }),
  ).toMatchObject({
    ok,
    level: "down",
    text,
  });
});

test("a missing answer is a failure after the timeout", async () => {
  const url = `http://127.0.0.1:${await serve("hang")}/`;
  expect(
    await probeCheck({ kind: "http", url, timeout: "300ms" }),
  ).toMatchObject({
    ok: false,
    text: "no answer within 0.3 s",
  });
});

test("an answer that is too late is not waited for until the timeout", async () => {
  const url = `http://127.0.0.1:${await serve("hang")}/`;
  expect(
    await probeCheck({
      kind: "http",
      url,
      timeout: "1h",
      expect: { within: "300ms" },
    }),
  ).toMatchObject({ ok: false, level: "down", text: "no answer within 0.3 s" });
});

test("a refused connection is a failure with the system's error", async () => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/`;
  for (const fields of [
    { kind: "http", url },
    { kind: "tcp", port },
  ]) {
    const result = await probeCheck(fields);
    expect(result).toMatchObject({ ok: false, closed: true });
    expect(result.text).toContain("ECONNREFUSED");
  }
});

test("a port that accepts connections is up, also if a variable set it as text", async () => {
  const port = await serve({ status: 200, body: "" });
  expect(await probeCheck({ kind: "tcp", port: String(port) })).toMatchObject({
    ok: true,
    text: "accepts connections",
  });
});
