import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startPairTestbed,
  type PairTestbed,
  type TestAnswer,
  type TestGateway,
} from "../../servers/gateway.ts";
import type { MockProvider } from "../../servers/provider.ts";

// Fallbacks, retries and time limits that a client requests: https://docs.litellm.ai/docs/proxy/reliability
let testbed: PairTestbed;
let provider: MockProvider;
let gateway: TestGateway;
let key: string;
let tester: string;

beforeAll(async () => {
  const alias = (name: string, url: string) =>
    `  - model_name: ${name}\n    litellm_params: { model: openai/${name}-model, api_base: "${url}", api_key: x, input_cost_per_token: 0.000001, output_cost_per_token: 0.000002 }\n`;
  testbed = await startPairTestbed(
    { alwaysStatus: 500 },
    (url, brokenUrl) => `model_list:
${alias("broken", brokenUrl)}${alias("first", url)}${alias("second", url)}${alias("third", url)}${alias("long", url)}
litellm_settings: { litellm_headers: true, cache: true, cache_params: { type: memory } }
router_settings:
  num_retries: 1
  cooldown_time: 1
  allowed_fails: 1000
  context_window_fallbacks: [{ first: [long] }]
  content_policy_fallbacks: [{ first: [second, third] }]
`,
  );
  ({ gateway, provider } = testbed);
  key = await gateway.createKey();
  tester = await gateway.createKey({
    metadata: { allow_client_mock_response: true },
  });
});
afterAll(() => testbed?.stop());

let prompts = 0;
function ask(
  fields: object,
  sender = key,
  headers: Record<string, string> = {},
): Promise<TestAnswer> {
  return gateway.request(
    "POST",
    "/v1/chat/completions",
    {
      model: "first",
      messages: [{ role: "user", content: `prompt ${++prompts}` }],
      ...fields,
    },
    sender,
    headers,
  );
}

function sentFor(answer: TestAnswer) {
  return provider.requests.findLast(
    ({ id }) => id === answer.headers.get("x-litellm-call-id"),
  )?.body;
}

test("a client's fallback answers, as the headers show", async () => {
  const answer = await ask({ model: "broken", fallbacks: ["second"] });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("x-litellm-attempted-fallbacks")).toBe("1");
  expect(answer.headers.get("x-litellm-attempted-retries")).toBe("1");
  expect(sentFor(answer)?.["model"]).toBe("second-model");
});

test("a fallback that the key may not use is denied by name before a provider is called", async () => {
  const limited = await gateway.createKey({ models: ["broken", "first"] });
  const before = provider.requests.length;
  for (const fallbacks of [
    ["second"],
    ["first", "second"],
    [{ model: "second", messages: [{ role: "user", content: "x" }] }],
    [{ broken: ["second"] }],
  ]) {
    const answer = await ask({ model: "broken", fallbacks }, limited);
    expect(answer.status).toBe(403);
    expect(answer.json["error"]?.["type"]).toBe("key_model_access_denied");
    expect(answer.json["error"]?.["message"]).toContain(
      "not allowed to access model second",
    );
    expect(answer.json["error"]?.["param"]).toBe("fallbacks");
  }
  expect(provider.requests.length).toBe(before);
  const allowed = await ask({ model: "broken", fallbacks: ["first"] }, limited);
  expect(allowed.status).toBe(200);
  const unknown = await ask({ fallbacks: ["secnod"] });
  expect(unknown.status).toBe(400);
  expect(unknown.json["error"]?.["message"]).toContain("secnod");
});

test("a fallback with its own messages gets these, and is not cached for the call's own", async () => {
  const messages = [{ role: "user", content: `own ${++prompts}` }];
  const call = { model: "broken", messages };
  const other = [{ role: "user", content: "What is a gateway?" }];
  const answer = await ask({
    ...call,
    temperature: 0.5,
    fallbacks: [{ model: "second", messages: other, max_tokens: 7 }],
  });
  expect(answer.status).toBe(200);
  expect(sentFor(answer)).toEqual({
    model: "second-model",
    messages: other,
    temperature: 0.5,
    max_tokens: 7,
  });
  const again = await ask({ ...call, temperature: 0.5, fallbacks: ["third"] });
  expect(again.headers.get("x-hearth-cache")).toBe("miss");
  expect(sentFor(again)?.["messages"]).toEqual(messages);
  const invalid = await ask({
    fallbacks: [{ model: "second", messages: "hello" }],
  });
  expect(invalid.status).toBe(400);
});

test("fallbacks by alias apply to the alias called", async () => {
  const answer = await ask({
    model: "broken",
    fallbacks: [{ first: ["second"] }, { broken: ["third"] }],
  });
  expect(sentFor(answer)?.["model"]).toBe("third-model");
  const none = await ask({ model: "broken", disable_fallbacks: true });
  expect(none.status).toBe(500);
});

test("retries and time limits come from the body or headers, and the answer shows them", async () => {
  const slow = () => [
    { role: "user", content: `${++prompts} [mock]{"delayMs":3000}` },
  ];
  for (const [fields, headers] of [
    [{ num_retries: 4, timeout: 9 }, {}],
    [{ max_retries: 4, request_timeout: 9 }, {}],
    [{}, { "x-litellm-num-retries": "4", "x-litellm-timeout": "9" }],
  ] as const) {
    const answer = await ask(fields, key, headers);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-litellm-max-retries")).toBe("4");
    expect(answer.headers.get("x-litellm-timeout")).toBe("9");
    expect(Object.keys(sentFor(answer) ?? {}).sort()).toEqual([
      "messages",
      "model",
    ]);
  }
  for (const [fields, headers] of [
    [{ timeout: 0.2 }, {}],
    [{}, { "x-litellm-timeout": "0.2" }],
  ] as const) {
    const late = await ask({ messages: slow(), ...fields }, key, headers);
    expect(late.status).toBe(408);
    expect(late.headers.get("x-litellm-timeout")).toBe("0.2");
    expect(late.headers.get("x-litellm-attempted-fallbacks")).toBe("0");
  }
});

test("mock_testing_fallbacks fails every attempt of the alias called", async () => {
  const answer = await ask(
    { mock_testing_fallbacks: true, fallbacks: ["second"], num_retries: 1 },
    tester,
  );
  expect(answer.status).toBe(200);
  expect(answer.headers.get("x-litellm-attempted-fallbacks")).toBe("1");
  expect(answer.headers.get("x-litellm-attempted-retries")).toBe("1");
  expect(sentFor(answer)?.["model"]).toBe("second-model");
  const none = await ask(
    { mock_testing_fallbacks: true, num_retries: 1 },
    tester,
  );
  expect(none.status).toBe(500);
});

test("mock_testing_rate_limit_error fails the first attempt only", async () => {
  const answer = await ask({ mock_testing_rate_limit_error: true }, tester);
  expect(answer.status).toBe(200);
  expect(answer.headers.get("x-litellm-attempted-retries")).toBe("1");
  expect(sentFor(answer)?.["model"]).toBe("first-model");
});

test("mock_testing_context_fallbacks leads to the context window's fallbacks", async () => {
  const answer = await ask({ mock_testing_context_fallbacks: true }, tester);
  expect(answer.status).toBe(200);
  expect(sentFor(answer)?.["model"]).toBe("long-model");
});

test("mock_testing_content_policy_fallbacks leads to the content policy's fallbacks", async () => {
  const answer = await ask(
    { mock_testing_content_policy_fallbacks: true },
    tester,
  );
  expect(answer.status).toBe(200);
  expect(answer.headers.get("x-litellm-attempted-fallbacks")).toBe("1");
  expect(sentFor(answer)?.["model"]).toBe("second-model");
});

/** A prompt that the mock provider rejects for its content. */
const rejected = () => [
  {
    role: "user",
    content: `${++prompts} [mock]{"status":400,"error":{"code":"content_filter","message":"The response was filtered due to our content management policy."}}`,
  },
];

test("content that a provider rejects goes along the content policy's fallbacks, without retries", async () => {
  const before = provider.requests.length;
  // The mock rejects it for each model: all were asked, each once, and the last error is the answer.
  const answer = await ask({ messages: rejected() });
  expect(answer.status).toBe(400);
  expect(answer.headers.get("x-litellm-attempted-fallbacks")).toBe("2");
  expect(
    provider.requests.slice(before).map(({ body }) => body["model"]),
  ).toEqual(["first-model", "second-model", "third-model"]);
  const own = { role: "user", content: "harmless" };
  const accepted = await ask({
    messages: rejected(),
    fallbacks: [{ model: "third", messages: [own] }],
  });
  expect(sentFor(accepted)?.["messages"]).toEqual([own]);
  const spared = await gateway.createKey({ models: ["first", "third"] });
  const narrow = await ask({ messages: rejected() }, spared);
  expect(narrow.headers.get("x-litellm-attempted-fallbacks")).toBe("1");
});

test("content that is rejected for a model without such fallbacks is not sent elsewhere", async () => {
  const before = provider.requests.length;
  const answer = await ask({
    model: "long",
    messages: rejected(),
    fallbacks: ["second"],
  });
  expect(answer.status).toBe(400);
  expect(provider.requests.length).toBe(before + 1);
});

test("mock_timeout fails with the time limit in the headers", async () => {
  const answer = await ask({ mock_timeout: true, timeout: 0.5 }, tester);
  expect(answer.status).toBe(408);
  expect(answer.headers.get("x-litellm-timeout")).toBe("0.5");
});

test("hooks for tests neither reach a provider nor spare a key without permission its costs", async () => {
  const hooks = {
    mock_response: "free of charge",
    mock_timeout: true,
    mock_testing_fallbacks: true,
    mock_testing_rate_limit_error: true,
    mock_tool_calls: [{}],
    mock_delay: 5,
  };
  const budget = await gateway.createKey({ max_budget: 0.00001 });
  const real = await ask(hooks, budget);
  expect(real.status).toBe(200);
  expect(real.text).not.toContain("free of charge");
  expect(Object.keys(sentFor(real) ?? {}).sort()).toEqual([
    "messages",
    "model",
  ]);
  expect((await ask(hooks, budget)).status).toBe(400);
});

test("an invented answer costs its tokens, counts towards the budget and is not cached for others", async () => {
  const messages = [{ role: "user", content: "an invented question" }];
  const limited = await gateway.createKey({
    max_budget: 0.00000001,
    metadata: { allow_client_mock_response: true },
    user_id: "inventor",
  });
  const call = { messages, mock_response: "an invented answer" };
  expect((await ask(call, limited)).text).toContain("an invented answer");
  const over = await ask(call, limited);
  expect(over.json["error"]?.["type"]).toBe("budget_exceeded");
  const colleague = await gateway.createKey({ user_id: "inventor" });
  const real = await ask({ messages }, colleague);
  expect(real.text).not.toContain("an invented answer");
});

test("a failure that LiteLLM's clients request by its name", async () => {
  const answer = await ask(
    { mock_response: "litellm.RateLimitError", num_retries: 0 },
    tester,
  );
  expect(answer.status).toBe(429);
});
