import { createServer, type Server } from "node:http";
import { afterEach, expect, test } from "vitest";
import { configSchema, type Check } from "../config/schema.ts";
import { freePort } from "../processes/ports.ts";
import { runCheck } from "./run-check.ts";

let server: Server | undefined;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

/** A server that answers like this; none when `answer` is "hang". */
async function serve(
  answer: { readonly status: number; readonly body: string } | "hang",
): Promise<number> {
  const port = await freePort();
  server = createServer((_request, response) => {
    if (answer !== "hang") response.writeHead(answer.status).end(answer.body);
  });
  await new Promise<void>((resolve) =>
    server?.listen(port, "127.0.0.1", resolve),
  );
  return port;
}

function check(fields: Record<string, unknown>): Check {
  const [parsed] = configSchema.parse({
    checks: [{ name: "a", kind: "http", timeout: "300ms", ...fields }],
  }).checks;
  if (parsed === undefined) throw new Error("no check");
  return parsed;
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
])("expecting %j, the answer %j is %s", async (expected, answer, ok, text) => {
  const url = `http://127.0.0.1:${await serve(answer)}/`;
  expect(await runCheck(check({ url, expect: expected }))).toMatchObject({
    ok,
    text,
  });
});

test("an answer that never comes is a failure after the timeout", async () => {
  const url = `http://127.0.0.1:${await serve("hang")}/`;
  expect(await runCheck(check({ url }))).toMatchObject({
    ok: false,
    text: "no answer within 0.3 s",
  });
});

test("nobody there is a failure with the system's word", async () => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/`;
  for (const fields of [{ url }, { kind: "tcp", port }]) {
    const result = await runCheck(check(fields));
    expect(result.ok).toBe(false);
    expect(result.text).toContain("ECONNREFUSED");
  }
});

test("a port that accepts is up", async () => {
  const port = await serve({ status: 200, body: "" });
  expect(await runCheck(check({ kind: "tcp", port }))).toMatchObject({
    ok: true,
    text: "accepts connections",
  });
});
