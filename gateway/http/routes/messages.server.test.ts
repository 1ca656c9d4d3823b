import { createServer } from "node:http";
import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { throwAwayDatabase } from "../../../test/servers/database.ts";
import {
  startTestGateway,
  type TestGateway,
} from "../../../test/servers/gateway.ts";
import { query } from "../../database/pool.ts";
import { listen } from "../../../test/servers/ports.ts";

interface Received {
  readonly path: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Readonly<Record<string, unknown>>;
}

const received: Received[] = [];
/** The next answer of the provider, and its status. */
let answer: object = {};
let status = 200;

const provider = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on("data", (part: Buffer) => parts.push(part));
  request.on("end", () => {
    received.push({
      path: request.url ?? "",
      headers: request.headers,
      body: JSON.parse(Buffer.concat(parts).toString()) as Received["body"],
    });
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(answer));
  });
});

const MESSAGE: Anthropic.Message = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-sonnet-4-5",
  container: null,
  diagnostics: null,
  content: [{ type: "text", text: "Hello", citations: null }],
  stop_reason: "end_turn",
  stop_sequence: null,
  stop_details: null,
  usage: {
    input_tokens: 10,
    output_tokens: 5,
    cache_creation_input_tokens: null,
    cache_read_input_tokens: null,
    cache_creation: null,
    inference_geo: null,
    output_tokens_details: null,
    server_tool_use: null,
    service_tier: "standard",
    speed: null,
  },
};

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let gateway: TestGateway;
let key: string;

beforeAll(async () => {
  database = await throwAwayDatabase();
  const port = await listen(provider);
  const url = `http://127.0.0.1:${port}`;
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: url,
    yaml: `model_list:
  - { model_name: claude, provider_params: { model: anthropic/claude-sonnet-4-5, api_base: "${url}", api_key: x, input_cost_per_token: 3e-6, output_cost_per_token: 15e-6, cache_read_input_token_cost: 0.3e-6, cache_creation_input_token_cost: 3.75e-6, cache_creation_input_token_cost_above_1hr: 6e-6, max_tokens: 900 } }
  - { model_name: guarded, provider_params: { model: anthropic/claude-sonnet-4-5, api_base: "${url}", api_key: x, guardrails: [mail] } }
  - { model_name: local, provider_params: { model: ollama/qwen3, api_base: "${url}/v1" } }
  - { model_name: gpt, provider_params: { model: openai/gpt-4o, api_base: "${url}/v1", api_key: x } }
guardrails:
  - { guardrail_name: mail, litellm_params: { guardrail: litellm_content_filter, mode: pre_call, blocked_words: [{ keyword: confidential, action: BLOCK }] } }
router_settings: { num_retries: 0, runner_probe_interval: never }
`,
  });
  key = await gateway.createKey({ max_budget: 100 });
});

beforeEach(() => {
  received.length = 0;
  answer = MESSAGE;
  status = 200;
});

afterAll(async () => {
  await gateway?.stop();
  provider.closeAllConnections();
  provider.close();
  await database?.drop();
});

function client(headers: Record<string, string> = {}): Anthropic {
  return new Anthropic({
    apiKey: key,
    baseURL: gateway.url,
    maxRetries: 0,
    defaultHeaders: headers,
  });
}

const user = (content: Anthropic.MessageParam["content"]) => ({
  role: "user" as const,
  content,
});
const ask = (
  fields: Partial<Anthropic.MessageCreateParamsNonStreaming> = {},
): Anthropic.MessageCreateParamsNonStreaming => ({
  model: "claude",
  max_tokens: 50,
  messages: [user("Hello")],
  ...fields,
});

test("tokens are counted by Anthropic, with the fields that count and the caller's beta", async () => {
  answer = { input_tokens: 4_711 };
  const counted = await client({
    "anthropic-beta": "context-1m-2025-08-07",
    "anthropic-version": "2023-06-01",
  }).messages.countTokens({
    model: "claude",
    messages: [user("Hello")],
    system: "Be kind.",
    thinking: { type: "enabled", budget_tokens: 2_000 },
  });
  expect(counted).toEqual({ input_tokens: 4_711 });
  expect(received).toMatchObject([
    {
      path: "/v1/messages/count_tokens",
      headers: {
        "x-api-key": "x",
        "anthropic-beta": "context-1m-2025-08-07",
        "anthropic-version": "2023-06-01",
      },
    },
  ]);
  // Neither `max_tokens` of the deployment nor anything else that Anthropic rejects here.
  expect(received[0]?.body).toEqual({
    model: "claude-sonnet-4-5",
    messages: [{ role: "user", content: "Hello" }],
    system: "Be kind.",
    thinking: { type: "enabled", budget_tokens: 2_000 },
  });
  await gateway.running.gateway.ledger.flush();
  const rows = await query(
    gateway.running.gateway.pool,
    "SELECT 1 FROM spend_log",
  );
  expect(rows).toEqual([]);
});

test.each([
  ["another provider", "local", 200],
  ["a prompt that a guardrail checks first", "guarded", 200],
  ["a provider that fails", "claude", 529],
  ["a server without the route", "claude", 404],
])(
  "tokens are estimated, and the answer says so: %s",
  async (_why, model, sent) => {
    status = sent;
    answer = { type: "error", error: { type: "api_error", message: "no" } };
    const counted = await client().messages.countTokens({
      model,
      messages: [user("Hello, how are you today?")],
    });
    expect(counted).toEqual({
      input_tokens: expect.any(Number),
      estimated: true,
    });
    expect(counted.input_tokens).toBeGreaterThan(5);
    expect(counted.input_tokens).toBeLessThan(60);
    expect(received).toHaveLength(model === "claude" ? 1 : 0);
  },
);

test("what Anthropic rejects as wrong is an error of the count, too", async () => {
  status = 400;
  answer = {
    type: "error",
    error: { type: "invalid_request_error", message: "messages.0: wrong" },
  };
  await expect(
    client().messages.countTokens({ model: "claude", messages: [user("x")] }),
  ).rejects.toThrow(/messages\.0: wrong/);
});

test("version and beta of the caller, cache marks, documents with citations, server tools and signed thinking reach Anthropic unchanged", async () => {
  const sent = ask({
    max_tokens: 50,
    system: [
      {
        type: "text",
        text: "Long",
        cache_control: { type: "ephemeral", ttl: "1h" },
      },
    ],
    tools: [{ type: "web_search_20250305", name: "web_search", max_uses: 2 }],
    messages: [
      user([
        {
          type: "document",
          source: {
            type: "base64",
            media_type: "application/pdf",
            data: "JVBERi0=",
          },
          title: "Terms",
          citations: { enabled: true },
          cache_control: { type: "ephemeral" },
        },
        { type: "image", source: { type: "url", url: "https://x/y.png" } },
        { type: "text", text: "What do they say?" },
      ]),
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm", signature: "c2lnbmVk" },
          { type: "redacted_thinking", data: "aGlkZGVu" },
          {
            type: "text",
            text: "Nothing.",
            citations: [
              {
                type: "page_location",
                cited_text: "…",
                document_index: 0,
                document_title: "Terms",
                start_page_number: 1,
                end_page_number: 2,
              },
            ],
          },
        ],
      },
      user("Sure?"),
    ],
  });
  const cited: Anthropic.Message = {
    ...MESSAGE,
    content: [
      { type: "thinking", thinking: "", signature: "bmV3" },
      {
        type: "text",
        text: "Yes.",
        citations: [
          {
            type: "page_location",
            cited_text: "…",
            document_index: 0,
            document_title: "Terms",
            file_id: null,
            start_page_number: 1,
            end_page_number: 2,
          },
        ],
      },
    ],
  };
  answer = cited;
  const got = await client({
    "anthropic-beta": "fine-grained-tool-streaming-2025-05-14",
    "anthropic-version": "2023-01-01",
  }).messages.create(sent);
  expect(got.content).toEqual(cited.content);
  expect(received[0]?.headers).toMatchObject({
    "anthropic-beta": "fine-grained-tool-streaming-2025-05-14",
    "anthropic-version": "2023-01-01",
  });
  expect(received[0]?.body).toEqual({ ...sent, model: "claude-sonnet-4-5" });
});

test("an advisor's model must be allowed to the caller as any other: by its own name or an alias", async () => {
  const advised = (model: string, models: readonly string[]) =>
    gateway.createKey({ models }).then((limited) =>
      gateway.request(
        "POST",
        "/v1/messages",
        ask({
          tools: [
            { type: "advisor_20260301", name: "advisor", model },
          ] as never,
        }),
        limited,
      ),
    );
  const refused = await advised("claude-opus-4-8", ["claude"]);
  expect([refused.status, refused.json["error"]?.["message"]]).toEqual([
    403,
    "key not allowed to access model claude-opus-4-8. Allowed models: claude.",
  ]);
  expect(received).toHaveLength(0);
  const named = ["claude", "claude-opus-4-8"];
  expect((await advised("claude-opus-4-8", named)).status).toBe(200);
  expect((await advised("claude-sonnet-4-5", ["claude"])).status).toBe(200);
  expect((await advised("claude-opus-4-8", [])).status).toBe(200);
});

test("a call with max_tokens 0, which only fills the provider's cache, reaches Anthropic", async () => {
  await client().messages.create(ask({ max_tokens: 0 }));
  expect(received).toMatchObject([{ body: { max_tokens: 0 } }]);
});

test("writing to the cache for 5 minutes and for an hour, and reading from it, have their own prices", async () => {
  answer = {
    ...MESSAGE,
    usage: {
      input_tokens: 100,
      output_tokens: 10,
      cache_read_input_tokens: 1_000,
      cache_creation_input_tokens: 500,
      cache_creation: {
        ephemeral_5m_input_tokens: 300,
        ephemeral_1h_input_tokens: 200,
      },
    },
  };
  const { response } = await client().messages.create(ask()).withResponse();
  const cost =
    100 * 3e-6 + 1_000 * 0.3e-6 + 300 * 3.75e-6 + 200 * 6e-6 + 10 * 15e-6;
  expect(Number(response.headers.get("x-hearth-cost"))).toBeCloseTo(cost, 12);
  await gateway.running.gateway.ledger.flush();
  const [row] = await query<{ saved: number }>(
    gateway.running.gateway.pool,
    "SELECT saved::float8 AS saved FROM spend_log WHERE request_id = $1",
    [response.headers.get("x-hearth-call-id")],
  );
  expect(row?.saved).toBeCloseTo(
    1_500 * 3e-6 - (cost - 100 * 3e-6 - 150e-6),
    12,
  );
});

const PDF: Anthropic.DocumentBlockParam = {
  type: "document",
  source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
  title: "terms.pdf",
};

test("images and PDF documents are translated for providers that take them", async () => {
  answer = {
    id: "c",
    choices: [{ index: 0, message: { content: "Hi" }, finish_reason: "stop" }],
  };
  await client().messages.create(
    ask({
      model: "gpt",
      messages: [
        user([
          PDF,
          { type: "image", source: { type: "url", url: "https://x/y.png" } },
        ]),
      ],
    }),
  );
  expect(received[0]?.body["messages"]).toEqual([
    {
      role: "user",
      content: [
        {
          type: "file",
          file: {
            filename: "terms.pdf",
            file_data: "data:application/pdf;base64,JVBERi0=",
          },
        },
        { type: "image_url", image_url: { url: "https://x/y.png" } },
      ],
    },
  ]);
});

type Fields = Partial<Anthropic.MessageCreateParamsNonStreaming>;
const LACKING: readonly (readonly [string, string, Fields, RegExp])[] = [
  ["a PDF document", "local", { messages: [user([PDF])] }, /\(document\)/],
  [
    "a document by its address",
    "gpt",
    {
      messages: [
        user([{ type: "document", source: { type: "url", url: "https://x" } }]),
      ],
    },
    /\(document\)/,
  ],
  [
    "citations",
    "gpt",
    { messages: [user([{ ...PDF, citations: { enabled: true } }])] },
    /citations/,
  ],
  [
    "a server tool",
    "local",
    { tools: [{ type: "web_search_20250305", name: "web_search" }] },
    /web_search_20250305/,
  ],
];

test.each(LACKING)(
  "%s that the provider of %s lacks is an error that names it",
  async (_what, model, fields, named) => {
    const asked = client().messages.create(ask({ model, ...fields }));
    await expect(asked).rejects.toThrow(named);
    await expect(asked).rejects.toThrow(/does not support .*omit it/);
    await expect(asked).rejects.toBeInstanceOf(Anthropic.BadRequestError);
    expect(received).toEqual([]);
  },
);

test("message batches are rejected in Anthropic's shape, which says what to do", async () => {
  const batches = client().messages.batches;
  const create = batches.create({
    requests: [{ custom_id: "a", params: ask() }],
  });
  await expect(create).rejects.toBeInstanceOf(Anthropic.NotFoundError);
  await expect(create).rejects.toThrow(
    "Message batches are not supported: send each message to POST /v1/messages.",
  );
  await expect(batches.retrieve("b")).rejects.toThrow("not supported");
  await expect(batches.list()).rejects.toThrow("not supported");
  expect(received).toEqual([]);
});

test.each(["claude", "local"])(
  "a thread at the provider of %s is rejected so that SDKs go on without one",
  async (model) => {
    const threaded = { model, thread: { type: "create" } };
    const create = client().messages.create(ask(threaded));
    await expect(create).rejects.toBeInstanceOf(Anthropic.BadRequestError);
    await expect(create).rejects.toMatchObject({
      error: {
        type: "error",
        error: {
          type: "invalid_request_error",
          message: expect.stringContaining("send all messages") as string,
          // What Anthropic's SDKs and Claude Code act on.
          details: { error_code: "thread_unsupported_request" },
        },
      },
    });
    const { messages } = ask();
    const sent = { ...threaded, messages };
    const counted = client().messages.countTokens(sent);
    await expect(counted).rejects.toThrow("send all messages");
    expect(received).toEqual([]);
    const alone = { model, thread: null };
    await client().messages.create(ask(alone));
    expect(received).toHaveLength(1);
  },
);

test("a chat with a parameter of a beta is sent with that beta", async () => {
  const edits = [{ type: "clear_tool_uses_20250919" }];
  const chat = await gateway.chat(key, "Hello", {
    model: "claude",
    context_management: { edits },
  });
  expect(chat.status).toBe(200);
  expect(received).toMatchObject([
    {
      headers: { "anthropic-beta": "context-management-2025-06-27" },
      body: { context_management: { edits } },
    },
  ]);
});
