import { createServer, type ServerResponse } from "node:http";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  startTestGateway,
  type TestAnswer,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { query } from "../database/pool.ts";
import { listen } from "../../test/servers/ports.ts";

/** The provider's next answers, each with status 200, or an address with a redirect to it; the last one is repeated. */
let answers: string[] = [];
/** It breaks off. */
const CUT = '{"id":';
let calls = 0;
const provider = createServer((question, response: ServerResponse) => {
  calls++;
  question.resume();
  const answer = (answers.length > 1 ? answers.shift() : answers[0]) ?? "";
  if (answer.startsWith("https://")) {
    return void response.writeHead(307, { location: answer }).end();
  }
  if (answer === CUT) {
    response.writeHead(200, { "content-length": CUT.length + 1 });
    return void response.write(answer, () => response.destroy());
  }
  response.setHeader(
    "content-type",
    answer.includes("data: ") ? "text/event-stream" : "application/json",
  );
  response.end(answer);
});
let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let gateway: TestGateway;
let key: string;

beforeAll(async () => {
  database = await throwAwayDatabase();
  const port = await listen(provider);
  const url = `http://127.0.0.1:${port}/v1`;
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: url,
    yaml: `model_list:
  - { model_name: mock, provider_params: { model: openrouter/m, api_base: "${url}", api_key: sk-secret-of-it, input_cost_per_token: 0.001, output_cost_per_token: 0.001 } }
proxy_settings: { cache: true }
router_settings: { num_retries: 1 }
`,
  });
  key = await gateway.createKey({});
});

beforeEach(() => {
  calls = 0;
});

afterAll(async () => {
  await gateway?.stop();
  provider.closeAllConnections();
  provider.close();
  await database?.drop();
});

const event = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;
const ERROR = {
  error: { code: 503, message: "No instance of the model for sk-secret-of-it" },
};
const HEAD = { id: "c", object: "chat.completion" };
const USAGE = { prompt_tokens: 2, completion_tokens: 3 };
const FINE = {
  ...HEAD,
  choices: [{ index: 0, message: { role: "assistant", content: "fine" } }],
  usage: USAGE,
};
const OPENING = event({
  ...HEAD,
  choices: [{ index: 0, delta: { role: "assistant", content: "" } }],
});
const FINE_STREAM =
  OPENING +
  event({ ...HEAD, choices: [{ index: 0, delta: { content: "fine" } }] }) +
  event({ ...HEAD, choices: [], usage: USAGE }) +
  "data: [DONE]\n\n";

async function rowOf(answer: TestAnswer): Promise<Record<string, unknown>> {
  await gateway.running.gateway.ledger.flush();
  const [row] = await query<Record<string, unknown>>(
    gateway.running.gateway.pool,
    "SELECT * FROM spend_log WHERE request_id = $1",
    [answer.headers.get("x-hearth-call-id")],
  );
  return row ?? {};
}

const FORMS: readonly (readonly [string, boolean, string])[] = [
  ["a whole answer", false, JSON.stringify(ERROR)],
  [
    "the choice of a whole answer",
    false,
    JSON.stringify({
      ...HEAD,
      choices: [{ index: 0, finish_reason: "error", ...ERROR }],
    }),
  ],
  ["JSON instead of a stream", true, JSON.stringify(ERROR)],
  ["a stream", true, `: OPENROUTER PROCESSING\n\n${event(ERROR)}`],
  [
    "a stream with an opening",
    true,
    OPENING + event({ ...HEAD, ...ERROR, choices: [] }),
  ],
  [
    "a field of a stream",
    true,
    `${OPENING}error: ${JSON.stringify(ERROR.error)}\n\ndata: [DONE]\n\n`,
  ],
  [
    "a line of a stream that is no field",
    true,
    OPENING + JSON.stringify(ERROR),
  ],
];

test.each(FORMS)(
  "an error in %s with status 200 is retried, answered with its own status, not billed and not cached",
  async (_, stream, text) => {
    answers = [text];
    const failed = await gateway.chat(key, text, { stream });
    expect(failed.status).toBe(503);
    expect(failed.json["error"]?.["message"]).toBe(
      "mock: No instance of the model for [secret]",
    );
    expect(calls).toBe(2);
    expect(await rowOf(failed)).toMatchObject({ status: "failure", spend: 0 });

    answers = [text, stream ? FINE_STREAM : JSON.stringify(FINE)];
    const answered = await gateway.chat(key, text, { stream });
    expect(answered.status).toBe(200);
    expect(answered.text).toContain("fine");
    expect(answered.headers.get("x-hearth-cache")).toBe("miss");
    expect(answered.headers.get("x-hearth-attempted-retries")).toBe("1");
    expect(await rowOf(answered)).toMatchObject({ status: "success" });
    expect((await rowOf(answered))["spend"]).toBeCloseTo(0.005, 10);
  },
);

test.each([
  ["a page", "<!doctype html><title>Welcome</title>"],
  ["nothing", ""],
  ["a value", "null"],
])(
  "%s with status 200 is retried, answered with 502, and not cached",
  async (what, text) => {
    answers = [text];
    const failed = await gateway.chat(key, what);
    expect(failed.status).toBe(502);
    expect(failed.json["error"]?.["message"]).toContain("with JSON");
    expect(calls).toBe(2);
    expect(await rowOf(failed)).toMatchObject({ status: "failure" });

    answers = [text, JSON.stringify(FINE)];
    const answered = await gateway.chat(key, what);
    expect(answered.json).toEqual(FINE);
    expect(answered.headers.get("x-hearth-attempted-retries")).toBe("1");
  },
);

test("an error that is the request's own fault is not retried", async () => {
  answers = [
    JSON.stringify({ error: { code: 400, message: "Unknown parameter" } }),
  ];
  const failed = await gateway.chat(key, "wrong");
  expect(failed.status).toBe(400);
  expect(calls).toBe(1);
});

test("an error in the middle of a stream ends it: a failure, not cached, billed for what was produced", async () => {
  answers = [
    OPENING +
      event({ ...HEAD, choices: [{ index: 0, delta: { content: "half" } }] }) +
      event({
        ...HEAD,
        choices: [{ index: 0, delta: {}, finish_reason: "error" }],
        usage: USAGE,
      }),
  ];
  const failed = await gateway.chat(key, "half", { stream: true });
  expect(failed.text).toContain("half");
  expect(calls).toBe(1);
  const row = await rowOf(failed);
  expect(row).toMatchObject({ status: "failure" });
  expect(row["spend"]).toBeCloseTo(0.005, 10);
  await gateway.chat(key, "half", { stream: true });
  expect(calls).toBe(2);
});

test("of an error of any length, a client and the ledger get what one needs at most", async () => {
  const error = { code: 400, message: "word ".repeat(200_000) };
  answers = [JSON.stringify({ error })];
  const failed = await gateway.chat(key, "long");
  expect(failed.status).toBe(400);
  const { message } = failed.json["error"] ?? {};
  expect(String(message)).toMatch(/^mock: word word [\w ]*$/);
  expect(String(message).length).toBeLessThan(70_000);
  const row = await rowOf(failed);
  expect(JSON.stringify(row["metadata"]).length).toBeLessThan(10_000);

  const content = { index: 0, delta: { content: "half" } };
  answers = [
    OPENING + event({ ...HEAD, choices: [content] }) + event({ error }),
  ];
  const cut = await gateway.chat(key, "long", { stream: true });
  expect(cut.text).toContain("half");
  expect(cut.text).toContain("sent an error that is too long");
  expect(cut.text).not.toContain("word word");
  expect(await rowOf(cut)).toMatchObject({ status: "failure" });
});

test("an error in a field of a stream takes the place of its end, also in a client's own shape", async () => {
  const content = { index: 0, delta: { content: "half" } };
  answers = [
    `${OPENING}${event({ ...HEAD, choices: [content] })}error: ${JSON.stringify(ERROR.error)}\n\ndata: [DONE]\n\n`,
  ];
  const failed = await gateway.chat(key, "field", { stream: true });
  expect(failed.text).toContain("half");
  expect(failed.text).toContain('data: {"error":{"code":503,"message":"No');
  expect(failed.text).not.toContain("sk-secret");
  expect(await rowOf(failed)).toMatchObject({ status: "failure" });
  const message = await gateway.request(
    "POST",
    "/v1/messages",
    {
      model: "mock",
      stream: true,
      max_tokens: 9,
      messages: [{ role: "user", content: "field" }],
    },
    key,
  );
  expect(message.text).toContain('event: error\ndata: {"type":"error"');
  expect(message.text).not.toContain("message_stop");
});

test("usage that the provider reports for a failed answer is billed", async () => {
  answers = [
    JSON.stringify({
      ...HEAD,
      choices: [{ index: 0, finish_reason: "error", ...ERROR }],
      usage: USAGE,
    }),
  ];
  const failed = await gateway.chat(key, "used");
  expect(failed.status).toBe(503);
  const row = await rowOf(failed);
  expect(row).toMatchObject({ status: "failure" });
  // Both attempts.
  expect(row["spend"]).toBeCloseTo(0.01, 10);
});

test.each([false, true])(
  "a redirect is a failure of the provider that names the other address without its query (stream: %s)",
  async (stream) => {
    answers = ["https://example.com/v1/chat/completions?key=secret"];
    const failed = await gateway.request("POST", "/v1/chat/completions", {
      model: "mock",
      messages: [{ role: "user", content: "go" }],
      stream,
    });
    expect(failed.status).toBe(502);
    expect(failed.json["error"]?.["message"]).toMatch(
      /redirect \(307\) to https:\/\/example\.com\/v1: set `api_base`/,
    );
    expect(calls).toBe(2);
  },
);

test("an answer that breaks off is described as that", async () => {
  answers = [CUT];
  const failed = await gateway.chat(key, "cut");
  expect(failed.status).toBe(502);
  expect(failed.json["error"]?.["message"]).toContain("broke off its answer");
});
