import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  modelYaml,
  startTestbed,
  type Testbed,
} from "../../servers/gateway.ts";
import {
  startMockProvider,
  type MockProvider,
} from "../../servers/provider.ts";
import { FORMATS } from "../provider-formats.ts";
import { startClientTestbed, type ClientTestbed } from "../testbed.ts";

/** Fields that LiteLLM's clients send to any gateway, with values that LiteLLM accepts. */
const LITELLM_FIELDS = {
  litellm_metadata: { tags: ["a"], generation_name: "g" },
  litellm_session_id: "session",
  litellm_trace_id: "trace",
  litellm_call_id: "call",
  litellm_logging_obj: null,
  litellm_request_debug: true,
  metadata: { tags: ["b"], trace_name: "t", purpose: "metadata" },
  tags: ["c"],
  guardrails: [],
  caching: true,
  cache: { ttl: 60 },
  "no-log": true,
  drop_params: true,
  allowed_openai_params: ["tools"],
  num_retries: 1,
  max_retries: 1,
  request_timeout: 30,
  stream_timeout: 30,
  fallbacks: [],
  context_window_fallbacks: [],
  context_window_fallback_dict: {},
  disable_fallbacks: true,
  cooldown_time: 5,
  mock_delay: 1,
  mock_tool_calls: [],
  custom_llm_provider: "openai",
  input_cost_per_token: 0,
  output_cost_per_token: 0,
  cache_read_input_token_cost: 0,
  model_info: { id: "x" },
  proxy_server_request: { url: "x" },
  ensure_alternating_roles: true,
  user_continue_message: { role: "user", content: "x" },
  merge_reasoning_content_in_choices: true,
  prompt_variables: { a: "b" },
  langfuse_public_key: "pk",
  langsmith_api_key: "secret of a service",
  success_callback: ["langfuse"],
  use_litellm_proxy: true,
  rpm: 1,
  tpm: 1,
  weight: 1,
  api_key: null,
  api_base: "",
};

const MESSAGES = [{ role: "user", content: "hello" }];
const DIALECTS = [
  { path: "/v1/chat/completions", body: { messages: MESSAGES } },
  { path: "/v1/completions", body: { prompt: "hello" } },
  { path: "/v1/messages", body: { messages: MESSAGES, max_tokens: 9 } },
  { path: "/v1/responses", body: { input: "hello" } },
  { path: "/v1/embeddings", body: { input: "hello" } },
  { path: "/v1/images/generations", body: { prompt: "hello" } },
  { path: "/v1/moderations", body: { input: "hello" } },
  { path: "/v1/audio/speech", body: { input: "hello", voice: "alloy" } },
  { path: "/v1/rerank", body: { query: "hello", documents: ["hello"] } },
];

describe("each provider's format", () => {
  let testbed: ClientTestbed;
  let key: string;

  beforeAll(async () => {
    testbed = await startClientTestbed();
    key = await testbed.createKey();
  });
  afterAll(() => testbed?.stop());

  test.each(FORMATS)(
    "a provider of the format %s gets none of LiteLLM's fields",
    async (format) => {
      const client = new OpenAI({
        apiKey: key,
        baseURL: `${testbed.url}/v1`,
        maxRetries: 0,
      });
      const question = {
        model: `${format}-chat`,
        messages: [{ role: "user" as const, content: "plain" }],
      };
      await client.chat.completions.create(question);
      const plain = testbed.providers.requests.at(-1)?.body;
      await client.chat.completions.create({
        ...question,
        ...LITELLM_FIELDS,
      } as typeof question);
      expect(testbed.providers.requests.at(-1)?.body).toEqual(plain);
    },
  );

  test("Anthropic's own API gets the end user's id and none of LiteLLM's fields", async () => {
    const body = { model: "anthropic-chat", messages: MESSAGES, max_tokens: 9 };
    const answer = await testbed.request(
      "POST",
      "/v1/messages",
      {
        ...body,
        ...LITELLM_FIELDS,
        metadata: { user_id: "anna", tags: ["b"] },
      },
      key,
    );
    expect(answer.status).toBe(200);
    const { model: _, ...sent } = testbed.providers.requests.at(-1)?.body ?? {};
    expect(sent).toEqual({
      messages: MESSAGES,
      max_tokens: 9,
      metadata: { user_id: "anna" },
    });
  });

  test("LiteLLM's effort with a summary is an effort where there is none", async () => {
    const reasoning_effort = { effort: "high", summary: "auto" };
    const sentTo = async (alias: string) => {
      const fields = { model: `${alias}-chat`, reasoning_effort };
      expect((await testbed.chat(key, "Hello", fields)).status).toBe(200);
      return testbed.providers.requests.at(-1)?.body;
    };
    expect(await sentTo("openai")).toMatchObject({ reasoning_effort: "high" });
    expect(await sentTo("anthropic")).toMatchObject({
      thinking: { type: "enabled" },
    });
    expect(await sentTo("gemini")).toMatchObject({
      extra_body: { google: { thinking_config: { thinking_level: "high" } } },
    });
    expect(await sentTo("responses")).toMatchObject({
      reasoning: reasoning_effort,
    });
  });

  test("Gemini gets its own parameters in the `extra_body` of a chat; other providers lack them", async () => {
    const extra_body = { google: { thinking_config: { thinking_budget: 0 } } };
    const chatWith = (alias: string, fields: object) =>
      testbed.chat(key, "Hello", { model: `${alias}-chat`, ...fields });
    const answer = await chatWith("gemini", { extra_body });
    expect(answer.status).toBe(200);
    expect(testbed.providers.requests.at(-1)?.body).toMatchObject({
      extra_body,
    });
    for (const alias of ["openai", "anthropic", "azure", "responses"]) {
      const refused = await chatWith(alias, { extra_body });
      expect(refused.status).toBe(400);
      expect(refused.json["error"]?.["param"]).toBe("extra_body");
      const dropped = { extra_body, drop_params: true };
      expect((await chatWith(alias, dropped)).status).toBe(200);
      expect(testbed.providers.requests.at(-1)?.body).not.toHaveProperty(
        "extra_body",
      );
    }
    const others = { ...extra_body, timeout: 1 };
    expect((await chatWith("gemini", { extra_body: others })).status).toBe(400);
  });
});

describe("each route", () => {
  let testbed: Testbed;
  let account: MockProvider;
  let key: string;

  beforeAll(async () => {
    account = await startMockProvider();
    testbed = await startTestbed((url) =>
      [
        modelYaml(
          url,
          `
  - model_name: claude
    litellm_params: { model: anthropic/claude-x, api_base: "${url}", api_key: x }
  - model_name: own
    litellm_params:
      model: openai/own
      api_base: ${url}
      api_key: operators-key
      extra_headers: { x-operator: secret }
      configurable_clientside_auth_params: [api_key, { api_base: "${account.url.replaceAll(".", "\\\\.")}" }]
  - model_name: own-key
    litellm_params: { model: openai/own, api_base: "${url}", api_key: operators-key, configurable_clientside_auth_params: [api_key] }
  - model_name: plain
    litellm_params: { model: openai/own, api_base: "${url}", api_key: x, seed: 1, additional_drop_params: [seed, tool_choice, tools, model] }
  - model_name: plain-claude
    litellm_params: { model: anthropic/claude-x, api_base: "${url}", api_key: x, additional_drop_params: [logit_bias, top_k] }
`,
        ),
        "litellm_settings: { cache: true, cache_params: { type: memory } }",
        "general_settings: { store_prompts_in_spend_logs: true }",
        "",
      ].join("\n"),
    );
    key = await testbed.gateway.createKey();
  });
  afterAll(async () => {
    await testbed?.stop();
    await account?.close();
  });

  const call = (path: string, body: object, sender = key) =>
    testbed.gateway.request("POST", path, { model: "mock", ...body }, sender);
  const chat = (fields: object, sender = key) =>
    call(
      "/v1/chat/completions",
      {
        messages: [{ role: "user", content: crypto.randomUUID() }],
        ...fields,
      },
      sender,
    );

  test.each(DIALECTS)(
    "POST $path forwards none of LiteLLM's fields",
    async ({ path, body }) => {
      const answer = await call(path, { ...body, ...LITELLM_FIELDS });
      expect([answer.status, answer.text.slice(0, 200)]).toEqual([
        200,
        expect.any(String),
      ]);
      const sent = testbed.provider.requests.at(-1)?.body ?? {};
      const forwarded = Object.keys(LITELLM_FIELDS).filter(
        (name) => name in sent,
      );
      // OpenAI's Responses API has metadata of its own.
      expect(forwarded).toEqual(path === "/v1/responses" ? ["metadata"] : []);
      if (path === "/v1/responses") {
        expect(sent["metadata"]).toEqual({ purpose: "metadata" });
      }
    },
  );

  test("chat metadata reaches a provider that stores the answer", async () => {
    await chat({ store: true, metadata: { purpose: "kept", tags: ["t"] } });
    expect(testbed.provider.requests.at(-1)?.body).toMatchObject({
      store: true,
      metadata: { purpose: "kept" },
    });
    await chat({ metadata: { purpose: "kept" } });
    expect(testbed.provider.requests.at(-1)?.body).not.toHaveProperty(
      "metadata",
    );
  });

  const UNSUPPORTED = {
    guardrails: ["pii"],
    policies: ["strict"],
    prompt_id: "stored",
    user_config: { model_list: [], router: 1 },
    model_list: [{}],
    allowed_model_region: "eu",
    extra_headers: { authorization: "x" },
    headers: { authorization: "x" },
    extra_body: { a: 1 },
    client_secret: "x",
    aws_access_key_id: "x",
    vertex_credentials: "{}",
    api_version: "2024-02-01",
  };

  test("only a chat takes Gemini's own parameters in `extra_body`", async () => {
    const extra_body = { google: { cached_content: "c" } };
    for (const { path, body } of DIALECTS) {
      const answer = await call(path, { ...body, extra_body });
      expect([path, answer.status]).toEqual([path, 400]);
    }
  });

  for (const { path, body } of DIALECTS) {
    test.each(Object.entries(UNSUPPORTED))(
      `POST ${path} rejects \`%s\`, which must not be ignored`,
      async (name, value) => {
        const before = testbed.provider.requests.length;
        const answer = await call(path, { ...body, [name]: value });
        expect(answer.status).toBe(400);
        expect(answer.json["error"]?.["message"]).toContain(`\`${name}\``);
        expect(testbed.provider.requests.length).toBe(before);
      },
    );
  }

  test("guardrails in metadata are rejected too", async () => {
    for (const field of ["metadata", "litellm_metadata"]) {
      for (const value of [
        { guardrails: ["pii"] },
        JSON.stringify({ guardrails: ["pii"] }),
      ]) {
        const answer = await chat({ [field]: value });
        expect(answer.status).toBe(400);
        expect(answer.json["error"]?.["param"]).toBe(`${field}.guardrails`);
      }
    }
  });

  test("a client's key and address are denied unless the model permits them, and never forwarded", async () => {
    const own = { api_key: "sk-of-the-client" };
    const there = { ...own, api_base: account.url };
    const before = testbed.provider.requests.length;
    for (const fields of [
      own,
      there,
      { base_url: account.url },
      { model: "own-key", ...there },
      { model: "own", ...own, api_base: `${account.url}.evil.example` },
      { model: "own", ...own, api_base: "http://169.254.169.254/v1" },
    ]) {
      for (const sender of [key, undefined]) {
        const answer = await chat(fields, sender);
        expect(answer.status).toBe(403);
        expect(answer.json["error"]?.["message"]).toContain(
          "configurable_clientside_auth_params",
        );
      }
    }
    const without = await chat({ model: "own", api_base: account.url });
    expect(without.status).toBe(400);
    expect(without.json["error"]?.["param"]).toBe("api_key");
    expect(testbed.provider.requests.length).toBe(before);
    expect(account.requests.length).toBe(0);
  });

  test("a permitted key and address replace the operator's, and the answer is not cached for others", async () => {
    const question = { messages: [{ role: "user", content: "whose key?" }] };
    const own = { api_key: "sk-of-the-client" };
    const mine = await chat({ model: "own-key", ...question, ...own });
    expect(mine.status).toBe(200);
    const byKey = testbed.provider.requests.at(-1);
    expect(byKey?.headers.authorization).toBe("Bearer sk-of-the-client");
    expect(Object.keys(byKey?.body ?? {}).sort()).toEqual([
      "messages",
      "model",
    ]);
    const there = await chat({
      model: "own",
      ...question,
      ...own,
      api_base: account.url,
    });
    expect(there.status).toBe(200);
    const away = account.requests.at(-1);
    expect(away?.headers.authorization).toBe("Bearer sk-of-the-client");
    expect(away?.headers["x-operator"]).toBeUndefined();
    const theirs = await chat({ model: "own", ...question });
    expect(theirs.headers.get("x-hearth-cache")).toBe("miss");
    expect(testbed.provider.requests.at(-1)?.headers["x-operator"]).toBe(
      "secret",
    );
  });

  test("a client's failing address does not cool the operator's deployment down", async () => {
    for (let failures = 0; failures < 8; failures++) {
      const failed = await chat({
        model: "own",
        messages: [{ role: "user", content: `[mock]{"status":401}` }],
        api_key: "wrong",
        api_base: account.url,
        num_retries: 0,
      });
      expect(failed.status).toBe(401);
    }
    expect((await chat({ model: "own" })).status).toBe(200);
  });

  test("a model's additional_drop_params never reach its provider", async () => {
    const tools = [{ type: "function", function: { name: "f" } }];
    await chat({ model: "plain", tools, tool_choice: "auto", user: "ann" });
    expect(testbed.provider.requests.at(-1)?.body).toEqual({
      model: "own",
      messages: expect.any(Array),
      user: "ann",
    });
    const unsupported = await chat({
      model: "plain-claude",
      logit_bias: { "1": 1 },
    });
    expect(unsupported.status).toBe(200);
    await call("/v1/messages", {
      model: "plain-claude",
      messages: MESSAGES,
      max_tokens: 9,
      top_k: 3,
    });
    expect(testbed.provider.requests.at(-1)?.body).not.toHaveProperty("top_k");
  });

  test("drop_params and additional_drop_params apply to one call", async () => {
    const claude = { model: "claude", logit_bias: { "1": 1 } };
    const rejected = await chat(claude);
    expect(rejected.status).toBe(400);
    expect(rejected.json["error"]?.["param"]).toBe("logit_bias");
    for (const drop_params of [true, ["top_k", "logit_bias"]]) {
      await chat({ ...claude, drop_params });
      expect(testbed.provider.requests.at(-1)?.path).toContain("/messages");
      expect(testbed.provider.requests.at(-1)?.body).not.toHaveProperty(
        "logit_bias",
      );
    }
    const other = await chat({ ...claude, drop_params: ["top_k"] });
    expect(other.status).toBe(400);
    expect(other.json["error"]?.["param"]).toBe("logit_bias");
    await chat({ top_p: 0.5, seed: 1, additional_drop_params: ["seed"] });
    expect(testbed.provider.requests.at(-1)?.body).toMatchObject({
      top_p: 0.5,
    });
    expect(testbed.provider.requests.at(-1)?.body).not.toHaveProperty("seed");
  });

  test("`caching: false` neither reads nor stores an answer", async () => {
    const messages = [{ role: "user", content: "cached?" }];
    const states = [];
    for (const fields of [{ caching: false }, {}, {}, { caching: false }]) {
      const answer = await chat({ messages, ...fields });
      states.push(answer.headers.get("x-hearth-cache"));
    }
    expect(states).toEqual(["bypass", "miss", "hit", "bypass"]);
  });

  test("`no-log` keeps a prompt out of the log", async () => {
    const logged = await chat({});
    const unlogged = await chat({ "no-log": true });
    const { ledger, prompts } = testbed.gateway.running.gateway;
    await ledger.flush();
    await prompts.flush();
    const prompt = async (answer: typeof logged) => {
      const id = answer.headers.get("x-hearth-call-id");
      const { json } = await testbed.gateway.request(
        "GET",
        `/spend/logs?request_id=${id}`,
      );
      return json[0]?.["messages"];
    };
    expect(await prompt(logged)).toBeTruthy();
    expect(await prompt(unlogged)).toBeFalsy();
  });

  test("a call belongs to the session of litellm_session_id", async () => {
    const answer = await chat({ litellm_session_id: "conversation 7" });
    await testbed.gateway.running.gateway.ledger.flush();
    const { json } = await testbed.gateway.request(
      "GET",
      `/spend/logs?request_id=${answer.headers.get("x-hearth-call-id")}`,
    );
    expect(json[0]?.["session_id"]).toBe("conversation 7");
  });
});
