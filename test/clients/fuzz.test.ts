import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { query } from "../../gateway/database/pool.ts";
import { FUZZED, fuzzedBody } from "./fuzz-bodies.ts";
import { startClientTestbed, type ClientTestbed } from "./testbed.ts";

/** `HEARTH_FUZZ_RUNS=5000` for a long run. */
const RUNS_PER_ROUTE = Number(process.env["HEARTH_FUZZ_RUNS"] ?? 50);

/** Error types that docs/gateway.md allows for a caller with a valid key, by status. */
const DOCUMENTED: Readonly<Record<number, readonly string[]>> = {
  400: ["invalid_request_error", "upstream_error"],
  403: ["key_model_access_denied"],
  404: ["not_found", "upstream_error"],
  // A body may set an impossible `timeout`.
  408: ["upstream_error"],
  413: ["invalid_request_error"],
};
const DOCUMENTED_ANTHROPIC: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  403: "permission_error",
  408: "timeout_error",
  413: "request_too_large",
};
/** Paths, stack frames and names of JavaScript errors. */
const INTERNALS =
  /\bat (async )?[\w.]+ \(|node_modules|\.ts:\d|TypeError|RangeError|call stack|Cannot read prop|is not a function|is not iterable/;

let testbed: ClientTestbed;
let key: string;

beforeAll(async () => {
  testbed = await startClientTestbed();
  key = await testbed.createKey({ max_budget: 1_000_000, key_alias: "fuzzed" });
});
afterAll(() => testbed.stop());

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly reached: boolean;
}

const seenCalls = new Set<string>();

async function send(path: string, body: string): Promise<Answer> {
  const before = testbed.providers.requests.length;
  const { status, text } = await testbed.request("POST", path, body, key);
  const received = testbed.providers.requests.slice(before);
  for (const { headers, path: asked } of received) {
    // Counting tokens is free, and no call.
    if (!asked.endsWith("/count_tokens")) {
      seenCalls.add(String(headers["x-request-id"]));
    }
  }
  return { status, text, reached: received.length > 0 };
}

function expectDocumented({ status, text }: Answer, anthropic: boolean): void {
  expect(text).not.toMatch(INTERNALS);
  if (status === 200) {
    return;
  }
  const { type, error } = JSON.parse(text) as {
    type?: string;
    error: { type: string; message: string; code?: string };
  };
  expect(error.message.length).toBeGreaterThan(5);
  if (anthropic) {
    expect(type).toBe("error");
    expect([status, error.type]).toEqual([
      status,
      DOCUMENTED_ANTHROPIC[status],
    ]);
  } else {
    expect(error.code).toBe(String(status));
    expect(DOCUMENTED[status] ?? [`${status} is not documented`]).toContain(
      error.type,
    );
  }
}

test.each(FUZZED)(
  "$path, $body.model: only documented errors",
  async (route) => {
    await fc.assert(
      fc.asyncProperty(fuzzedBody(route), async (body) => {
        const answer = await send(route.path, body);
        try {
          expectDocumented(answer, route.anthropic === true);
        } catch (error) {
          throw new Error(
            `${answer.status} ${answer.text.slice(0, 300)} for ${body.slice(0, 400)}`,
            { cause: error },
          );
        }
      }),
      { numRuns: RUNS_PER_ROUTE, endOnFailure: true },
    );
  },
);

test.each([
  ["POST", "/openai/deployments/%zz/chat/completions"],
  ["POST", "/openai/deployments/%00/chat/completions"],
  ["GET", "/v1/models/%ff"],
  ["GET", "/v1/models/%00"],
  ["GET", "/v1/models/../../etc/passwd"],
])("%s %s: an invalid path gets a documented error", async (method, path) => {
  const { status, text } = await testbed.request(
    method,
    path,
    method === "POST" ? { messages: [] } : undefined,
    key,
  );
  expectDocumented({ status, text, reached: false }, false);
  expect(status).not.toBe(200);
});

test("the ledger contains exactly the calls that reached a provider", async () => {
  const { pool, journal } = testbed.running.gateway;
  await expect
    .poll(() => journal.state().pendingRecords, { timeout: 10_000 })
    .toBe(0);
  const rows = await query<{ request_id: string; api_key: string }>(
    pool,
    "SELECT request_id, api_key FROM spend_log",
  );
  expect(new Set(rows.map(({ request_id }) => request_id))).toEqual(seenCalls);
  expect(rows).toHaveLength(seenCalls.size);
  expect(new Set(rows.map(({ api_key }) => api_key)).size).toBe(1);
  expect(await query(pool, "SELECT * FROM spend_check")).toEqual([]);
  for (const [table, count] of [
    ["keys", 1],
    ["teams", 0],
    ["end_users", 0],
    ["tags", 0],
  ] as const) {
    expect(
      await query(pool, `SELECT count(*)::int AS count FROM ${table}`),
    ).toEqual([{ count }]);
  }
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
});
