import { createHmac } from "node:crypto";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { afterEach, beforeEach, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  modelYaml,
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import {
  startMockProvider,
  type MockProvider,
} from "../../test/servers/provider.ts";
import { listen } from "../../test/servers/ports.ts";

/** The machine may be busy. */
const SOON = { timeout: 60_000 };
const SECRET = "whsec_c2VjcmV0IG9mIHRoZSByZWNlaXZlcg==";

type Payload = Readonly<Record<string, unknown>>;

/** A receiver that verifies each request and answers with the next status, then with 204. */
class Receiver {
  readonly requests: {
    readonly headers: IncomingHttpHeaders;
    readonly body: string;
    readonly status: number;
  }[] = [];
  readonly statuses: number[] = [];
  /** Requests without an answer. */
  isHanging = false;
  readonly #server: Server = createServer((request, response) => {
    this.#receive(request, response).catch(() => response.destroy());
  });

  async start(): Promise<string> {
    const port = await listen(this.#server);
    return `http://127.0.0.1:${port}/calls`;
  }

  /** The calls that were accepted. */
  get calls(): readonly Payload[] {
    return this.requests
      .filter(({ status }) => status === 204)
      .flatMap(({ body }) => JSON.parse(body) as Payload[]);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #receive(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    let body = "";
    for await (const part of request) {
      body += String(part);
    }
    if (this.isHanging) {
      return;
    }
    const { headers } = request;
    const status = isSigned(headers, body)
      ? (this.statuses.shift() ?? 204)
      : 401;
    this.requests.push({ headers, body, status });
    response.writeHead(status).end();
  }
}

/** Verifies a request as the Standard Webhooks specification says. */
function isSigned(headers: IncomingHttpHeaders, body: string): boolean {
  const id = String(headers["webhook-id"]);
  const seconds = String(headers["webhook-timestamp"]);
  const key = Buffer.from(SECRET.slice("whsec_".length), "base64");
  const signature = createHmac("sha256", key)
    .update(`${id}.${seconds}.${body}`)
    .digest("base64");
  const isRecent = Math.abs(Date.now() / 1_000 - Number(seconds)) < 300;
  return isRecent && headers["webhook-signature"] === `v1,${signature}`;
}

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let provider: MockProvider;
let receiver: Receiver;
let url: string;
let gateway: TestGateway | null = null;

beforeEach(async () => {
  database = await throwAwayDatabase();
  provider = await startMockProvider();
  receiver = new Receiver();
  url = await receiver.start();
});

afterEach(async () => {
  await stop();
  await receiver?.close();
  await provider?.close();
  await database?.drop();
});

async function stop(): Promise<void> {
  await gateway?.stop();
  gateway = null;
}

async function start(settings: string): Promise<TestGateway> {
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: provider.url,
    env: { WEBHOOK_KEY: SECRET, RECEIVER_TOKEN: "token-of-the-receiver" },
    yaml: modelYaml(
      provider.url,
      `proxy_settings:
  call_webhook: { url: "${url}", secret: os.environ/WEBHOOK_KEY, headers: { Authorization: os.environ/RECEIVER_TOKEN }${settings} }
`,
    ),
  });
  return gateway;
}

test("the health of callbacks shows what the webhook accepted, and what to use instead of others", async () => {
  const { createKey, chat, request } = await start("");
  await chat(await createKey({}), "hello");
  await expect.poll(() => receiver.calls.length, SOON).toBe(1);
  const health = async (service: string) => {
    const { status, json: body } = await request(
      "GET",
      `/health/services?service=${service}`,
    );
    return { status, body };
  };
  await expect
    .poll(() => health("webhook"), SOON)
    .toEqual({
      status: 200,
      body: {
        status: "success",
        message:
          "1 calls delivered, 0 not accepted, 0 dropped because too many waited, 0 waiting.",
      },
    });
  for (const [service, says] of [
    ["otel", "is not configured"],
    ["slack", "the supervisor sends alerts to Slack"],
    ["webhok", 'did you mean \\"webhook\\"?'],
  ] as const) {
    const rejected = await health(service);
    expect(rejected.status).toBe(400);
    expect(JSON.stringify(rejected.body)).toContain(says);
  }
});

test("finished calls are posted in LiteLLM's fields, signed, without prompts", async () => {
  const { createKey, chat } = await start("");
  const key = await createKey({ key_alias: "posted", user_id: "ada" });
  const answer = await chat(key, "private words", {
    user: "customer-1",
    metadata: { tags: ["blue"], session_id: "session-7" },
  });
  expect(answer.text).toContain("four words");
  const failed = await chat(key, '[mock]{"status":400}');
  expect(failed.status).toBe(400);
  await expect.poll(() => receiver.calls.length, SOON).toBe(2);
  const [success, failure] = receiver.calls;
  expect(success).toMatchObject({
    id: answer.headers.get("x-hearth-call-id"),
    trace_id: "session-7",
    call_type: "acompletion",
    status: "success",
    stream: false,
    model: "mock-model",
    model_group: "mock",
    custom_llm_provider: "openai",
    api_base: provider.url,
    prompt_tokens: 10,
    completion_tokens: 4,
    total_tokens: 14,
    response_cost: 0.000018,
    cache_hit: false,
    end_user: "customer-1",
    request_tags: ["blue"],
    metadata: {
      user_api_key_alias: "posted",
      user_api_key_user_id: "ada",
      user_api_key_end_user_id: "customer-1",
    },
    error_str: null,
    messages: null,
    response: null,
  });
  expect(failure).toMatchObject({
    status: "failure",
    response_cost: 0,
    error_str: expect.stringContaining("the mock was asked to fail") as string,
    error_information: { error_code: "400", llm_provider: "openai" },
  });
  const sent = JSON.stringify(receiver.requests.map(({ body }) => body));
  expect(sent).not.toContain("private words");
  expect(sent).not.toContain(key);
  expect(receiver.requests[0]?.headers["authorization"]).toBe(
    "token-of-the-receiver",
  );
});

test("prompts and answers are posted if configured, except those kept out of logs", async () => {
  const { createKey, chat } = await start(", content: true");
  const key = await createKey({});
  await chat(key, "shown words");
  await chat(key, "hidden words", { "no-log": true });
  await expect.poll(() => receiver.calls.length, SOON).toBe(2);
  expect(receiver.calls[0]).toMatchObject({
    messages: [{ role: "user", content: "shown words" }],
    response: expect.stringContaining("four words in here") as string,
  });
  expect(receiver.calls[1]).toMatchObject({ messages: null, response: null });
});

test("a receiver that fails first gets each call once, with the same id for each attempt", async () => {
  receiver.statuses.push(503, 429);
  const { createKey, chat, request } = await start("");
  const key = await createKey({});
  await chat(key, "one");
  await chat(key, "two");
  await expect.poll(() => receiver.calls.length, SOON).toBe(2);
  expect(receiver.requests.map(({ status }) => status)).toEqual([
    503, 429, 204,
  ]);
  const ids = receiver.requests.map(({ headers }) => headers["webhook-id"]);
  expect(new Set(ids).size).toBe(1);
  const { text } = await request("GET", "/metrics");
  expect(text).toContain("hearth_webhook_calls_delivered_total 2");
  expect(text).toContain(
    'hearth_webhook_calls_dropped_total{reason="not_accepted"} 0',
  );
});

test("a batch that the receiver rejects is dropped and counted, and later ones are posted", async () => {
  receiver.statuses.push(400);
  const { createKey, chat, request } = await start(", calls: success");
  const key = await createKey({});
  await chat(key, "rejected");
  await expect.poll(() => receiver.requests.length, SOON).toBe(1);
  await chat(key, '[mock]{"status":400}');
  await chat(key, "accepted");
  await expect.poll(() => receiver.calls.length, SOON).toBe(1);
  expect(receiver.calls[0]).toMatchObject({ status: "success" });
  const { text } = await request("GET", "/metrics");
  expect(text).toContain(
    'hearth_webhook_calls_dropped_total{reason="not_accepted"} 1',
  );
});

test("a receiver that hangs holds up neither calls nor the stop, and what waits is bounded", async () => {
  receiver.isHanging = true;
  const { createKey, chat, running } = await start(", content: true");
  const key = await createKey({});
  const large = "x".repeat(2 * 1024 * 1024);
  for (let at = 0; at < 10; at++) {
    expect((await chat(key, large)).status).toBe(200);
  }
  const counts = running.gateway.webhook?.counts();
  expect(counts).toMatchObject({ waiting: 7, overflowed: 3 });
  await stop();
});

test("what waits is posted when the gateway stops", async () => {
  const { createKey, chat } = await start("");
  await chat(await createKey({}), "last");
  await stop();
  expect(receiver.calls).toHaveLength(1);
});
