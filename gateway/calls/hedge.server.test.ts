import {
  createServer,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import { createGatewayProcess } from "../../test/servers/gateway-process.ts";
import {
  MASTER_KEY,
  startTestGateway,
  type TestAnswer,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { createPool, query } from "../database/pool.ts";
import { listen } from "../../test/servers/ports.ts";

const INPUT_TOKENS = 10;
const OUTPUT_TOKENS = 4;
const PRICE = 0.001;
const ANSWERED = (INPUT_TOKENS + OUTPUT_TOKENS) * PRICE;
const USAGE = { prompt_tokens: INPUT_TOKENS, completion_tokens: OUTPUT_TOKENS };

const PATIENT = { timeout: 20_000 };

/** What a deployment does with its next calls; `wait` never answers, `late` once the other one was called, `held` once released. */
type Behaviour = "answer" | "wait" | "late" | "held" | "open" | "fail";

/** The first deployment is the cheaper one. */
let first: Behaviour = "wait";
let second: Behaviour = "answer";
let held = Promise.withResolvers<void>();
const called: string[] = [];
const ids = new Set<string>();
const cancelled: string[] = [];

async function serve(
  question: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  let text = "";
  for await (const part of question) {
    text += String(part);
  }
  const name = question.url?.split("/")[1] ?? "";
  called.push(name);
  ids.add(String(question.headers["x-request-id"]));
  response.once("close", () => {
    if (!response.writableFinished) {
      cancelled.push(name);
    }
  });
  const isStream = (JSON.parse(text) as { stream?: boolean }).stream === true;
  const behaviours = { first, second, cut: "cut" } as const;
  switch (behaviours[name as keyof typeof behaviours]) {
    case "wait":
      return;
    case "open":
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event({ delta: { role: "assistant", content: "" } }));
      return;
    case "cut":
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event({ delta: { role: "assistant", content: "" } }));
      setImmediate(() => response.destroy());
      return;
    case "fail":
      response.writeHead(500).end('{"error":{"message":"broken"}}');
      return;
    case "late":
      await vi.waitFor(() => expect(called.at(-1)).not.toBe(name), PATIENT);
      return sendWhole(response, name);
    case "held":
      await held.promise;
      return sendWhole(response, name);
    case "answer":
      return isStream ? sendStream(response, name) : sendWhole(response, name);
  }
}

function event(choice: object): string {
  return `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, ...choice }] })}\n\n`;
}

function sendStream(response: ServerResponse, name: string): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(event({ delta: { content: name } }));
  response.write(event({ delta: {}, finish_reason: "stop" }));
  response.write(`data: ${JSON.stringify({ choices: [], usage: USAGE })}\n\n`);
  response.end("data: [DONE]\n\n");
}

function sendWhole(response: ServerResponse, name: string): void {
  const message = { role: "assistant", content: name };
  response.setHeader("content-type", "application/json");
  response.end(
    JSON.stringify({
      id: "c",
      choices: [{ index: 0, message, finish_reason: "stop" }],
      usage: USAGE,
    }),
  );
}

const provider = createServer((question, response) => {
  serve(question, response).catch(() => response.destroy());
});
let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let gateway: TestGateway;
let yaml: string;

beforeAll(async () => {
  database = await throwAwayDatabase();
  const port = await listen(provider);
  const deployment = (
    alias: string,
    name: string,
    hedge: string,
    price = PRICE,
  ) =>
    `  - { model_name: ${alias}, provider_params: { model: openai/m, api_base: "http://127.0.0.1:${port}/${name}", api_key: x, input_cost_per_token: ${price}, output_cost_per_token: ${price}${hedge} } }\n`;
  const SOON = ", hedge_after: 50ms";
  const LATER = ", hedge_after: 60s";
  yaml = `model_list:
${deployment("pair", "first", SOON, PRICE * 0.999)}${deployment("pair", "second", "")}${deployment("single", "second", SOON)}${deployment("later", "first", LATER, PRICE * 0.999)}${deployment("later", "second", "")}${deployment("patient", "first", "", PRICE * 0.999)}${deployment("patient", "second", "")}${deployment("again", "cut", ", max_retries: 1", PRICE * 0.999)}${deployment("again", "second", "")}${deployment("thrice", "cut", ", max_retries: 1", PRICE * 0.998)}${deployment("thrice", "first", SOON, PRICE * 0.999)}${deployment("thrice", "second", "")}
router_settings: { routing_strategy: cost-based-routing, num_retries: 0, allowed_fails: 1000 }
`;
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: "",
    yaml,
  });
});

/** Calls of the alias `pair` that went to both, by the deployment that answered. */
async function hedges(): Promise<Readonly<Record<string, number>>> {
  const { text } = await gateway.request("GET", "/metrics");
  return Object.fromEntries(
    [
      ...text.matchAll(
        /^hearth_hedges_total\{alias="pair",answered="(\w+)"\} (\d+)$/gm,
      ),
    ].map(([, answered = "", count]) => [answered, Number(count)]),
  );
}

beforeEach(() => {
  called.length = 0;
  cancelled.length = 0;
  ids.clear();
  first = "wait";
  second = "answer";
  held = Promise.withResolvers();
});

afterAll(async () => {
  await gateway?.stop();
  provider.closeAllConnections();
  provider.close();
  await database?.drop();
});

async function rowsOf(answer: TestAnswer) {
  await gateway.running.gateway.ledger.flush();
  return query<Record<string, unknown>>(
    gateway.running.gateway.pool,
    "SELECT status, spend::float8 AS spend, metadata FROM spend_log WHERE request_id = $1",
    [answer.headers.get("x-hearth-call-id")],
  );
}

async function spendOf(key: string): Promise<number> {
  const { json } = await gateway.request("GET", "/key/info", undefined, key);
  return Number(json["info"]?.["spend"]);
}

test.each([
  [false, "wait"],
  [true, "wait"],
  [true, "open"],
] as const)(
  "stream %s: a second deployment answers when the first one is slow (%s), which is cancelled and booked once",
  async (stream, slow) => {
    first = slow;
    const key = await gateway.createKey({
      max_budget: 10,
      rpm_limit: 1,
      max_parallel_requests: 1,
    });
    const answer = await gateway.chat(key, "hello", { model: "pair", stream });
    expect(answer.status).toBe(200);
    expect(answer.text).toContain("second");
    expect(called).toEqual(["first", "second"]);
    await vi.waitFor(() => expect(cancelled).toEqual(["first"]));
    // One call, known to both by its one id.
    expect([...ids]).toEqual([answer.headers.get("x-hearth-call-id")]);
    const rows = await rowsOf(answer);
    expect(rows).toMatchObject([
      {
        status: "success",
        metadata: { attempts: [{ status: 499 }], estimated: true },
      },
    ]);
    const spend = Number(rows[0]?.["spend"]);
    expect(spend).toBeGreaterThan(ANSWERED);
    expect(spend).toBeLessThan(2 * ANSWERED);
    expect(await spendOf(key)).toBeCloseTo(spend, 9);
    // The request of the minute was counted once, and the slot is free again.
    const next = await gateway.chat(key, "hello", { model: "pair" });
    expect(next.json["error"]?.["message"]).toContain("1 request");
    expect(gateway.running.gateway.activeCalls.count()).toBe(0);
  },
);

test("what is reserved for a second attempt after the end of the call is released", async () => {
  first = "held";
  const { limits } = gateway.running.gateway;
  const [admit, settle] = [
    limits.admit.bind(limits),
    limits.settle.bind(limits),
  ];
  const settled = Promise.withResolvers<void>();
  let admissions = 0;
  const late = vi.spyOn(limits, "admit").mockImplementation(async (call) => {
    admissions += 1;
    if (admissions === 2) {
      held.resolve();
      await settled.promise;
    }
    return admit(call);
  });
  vi.spyOn(limits, "settle").mockImplementation(async (settlement) => {
    await settle(settlement);
    settled.resolve();
  });
  const key = await gateway.createKey({
    max_budget: 10,
    max_parallel_requests: 1,
  });
  const answer = await gateway.chat(key, "hello", { model: "pair" });
  await Promise.all(late.mock.results.map(({ value }) => value));
  vi.restoreAllMocks();
  expect(answer.text).toContain("first");
  expect(called).toEqual(["first"]);
  await expect
    .poll(async () => {
      const next = await gateway.chat(key, "hello", { model: "single" });
      return next.status;
    })
    .toBe(200);
});

test("a deployment that answers in time is the only one called", async () => {
  first = "answer";
  const key = await gateway.createKey({ max_budget: 10 });
  const answer = await gateway.chat(key, "hello", { model: "later" });
  expect(answer.text).toContain("first");
  expect(called).toEqual(["first"]);
});

test("calls to two deployments are counted by the one that answered", async () => {
  const key = await gateway.createKey({ max_budget: 10 });
  const before = await hedges();
  await gateway.chat(key, "one", { model: "pair" });
  second = "fail";
  await gateway.chat(key, "two", { model: "pair", timeout: 0.4 });
  first = "late";
  await gateway.chat(key, "three", { model: "pair" });
  const counted = await hedges();
  const since = (answered: string) =>
    (counted[answered] ?? 0) - (before[answered] ?? 0);
  expect(["second", "neither", "first"].map(since)).toEqual([1, 1, 1]);
  expect(counted["second"]).toBeGreaterThan(0);
});

test("a failure of one leaves the call to the other", async () => {
  second = "fail";
  const key = await gateway.createKey({ max_budget: 10 });
  const asking = gateway.chat(key, "hello", { model: "pair", timeout: 2 });
  await vi.waitFor(() => expect(called).toEqual(["first", "second"]));
  const answer = await asking;
  expect(answer.status).toBe(408);
  const [row] = await rowsOf(answer);
  expect(row).toMatchObject({
    status: "failure",
    metadata: { attempts: [{ status: 500 }, { status: 408 }] },
  });
});

test.each([
  ["single", {}],
  ["patient", {}],
  // Less than both attempts may cost: an answer is expected to have 100 tokens.
  ["pair", { max_budget: 0.15 }],
])(
  "no second deployment is called: %s, for a key with %j",
  async (model, limits) => {
    first = "wait";
    second = "wait";
    const key = await gateway.createKey(limits);
    const answer = await gateway.chat(key, "hello", {
      model,
      timeout: 0.4,
      max_tokens: 100,
    });
    expect(answer.status).toBe(408);
    expect(called).toHaveLength(1);
  },
);

test.each([
  [0.25, ["cut", "first"]],
  [0.35, ["cut", "first", "second"]],
])(
  "after a failure that may be charged, a budget of $%d allows the calls of %j",
  async (maxBudget, calls) => {
    second = "wait";
    const key = await gateway.createKey({ max_budget: maxBudget });
    // About a hundred tokens, ten cents for each attempt.
    await gateway.chat(key, "hello ".repeat(95), {
      model: "thrice",
      stream: true,
      timeout: 0.5,
      max_tokens: 1,
    });
    expect(called).toEqual(calls);
  },
);

test("the budget of a key is not exceeded by second attempts", async () => {
  const maxBudget = 5 * ANSWERED;
  const key = await gateway.createKey({ max_budget: maxBudget });
  for (let calls = 0; calls < 12; calls++) {
    first = calls % 2 === 0 ? "wait" : "answer";
    await gateway.chat(key, `hello ${calls}`, {
      model: "pair",
      max_tokens: OUTPUT_TOKENS,
      timeout: 0.3,
    });
  }
  expect(await spendOf(key)).toBeLessThanOrEqual(maxBudget + ANSWERED);
});

test("a client that leaves while both are slow ends both", async () => {
  second = "open";
  first = "open";
  const key = await gateway.createKey({ max_budget: 10 });
  const leaving = new AbortController();
  const asking = fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({
      model: "pair",
      stream: true,
      messages: [{ role: "user", content: "hello" }],
    }),
    signal: leaving.signal,
  }).catch(() => null);
  await vi.waitFor(() => expect(called).toEqual(["first", "second"]));
  leaving.abort();
  await asking;
  await vi.waitFor(() =>
    expect(cancelled.toSorted()).toEqual(["first", "second"]),
  );
  await vi.waitFor(() =>
    expect(gateway.running.gateway.activeCalls.count()).toBe(0),
  );
  await gateway.running.gateway.ledger.flush();
  const rows = await query<{ spend: number }>(
    gateway.running.gateway.pool,
    "SELECT spend::float8 AS spend FROM spend_log WHERE request_id = ANY($1)",
    [[...ids]],
  );
  expect(rows).toHaveLength(1);
  expect(rows[0]?.spend).toBeGreaterThan(0);
});

test("kill -9 after two deployments were asked: the prompts of both are billed, once", async () => {
  second = "wait";
  const own = await throwAwayDatabase();
  const killed = await createGatewayProcess({ databaseUrl: own.url, yaml });
  const pool = createPool(own.url, 1, pino({ level: "silent" }));
  try {
    await killed.start();
    const ask = (model: string, stream: boolean) =>
      fetch(`${killed.url}/v1/chat/completions`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${MASTER_KEY}`,
          "content-type": "application/json",
        },
        body: JSON.stringify({
          model,
          stream,
          messages: [{ role: "user", content: "hello" }],
        }),
      }).catch(() => null);
    const asking = [
      ask("patient", false),
      ask("pair", false),
      ask("again", true),
    ];
    await vi.waitFor(
      () =>
        expect(called.toSorted()).toEqual([
          "cut",
          "first",
          "first",
          "second",
          "second",
        ]),
      PATIENT,
    );
    await killed.kill();
    await Promise.all(asking);
    await killed.start();
    const rows = await vi.waitFor(async () => {
      const found = await query<InterruptedRow>(
        pool,
        `SELECT model_group, prompt_tokens::float8 AS input, spend::float8 AS spend
         FROM spend_log WHERE status = 'interrupted'`,
      );
      expect(found).toHaveLength(3);
      return Object.fromEntries(found.map((row) => [row.model_group, row]));
    }, PATIENT);
    const { again, pair, patient } = rows;
    const input = Number(pair?.input);
    expect(patient?.spend).toBeCloseTo(input * PRICE * 0.999, 12);
    expect(pair?.spend).toBeCloseTo(input * PRICE * 1.999, 12);
    // The first one failed after it had the whole prompt.
    expect(again?.spend).toBeCloseTo(input * PRICE * 1.999, 12);
    expect(await query(pool, "SELECT * FROM spend_check")).toEqual([]);
  } finally {
    await pool.end();
    await killed.remove();
    await own.drop();
  }
});

interface InterruptedRow {
  readonly model_group: string;
  readonly input: number;
  readonly spend: number;
}
