import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startTestbed,
  modelYaml,
  type Testbed,
} from "../../servers/gateway.ts";

// End users as LiteLLM's clients name them: https://docs.litellm.ai/docs/proxy/customers
let testbed: Testbed;
let key: string;

beforeAll(async () => {
  testbed = await startTestbed((url) =>
    modelYaml(
      url,
      `
  - model_name: claude
    provider_params: { model: openai/other, api_base: "${url}", api_key: x, input_cost_per_token: 0.001 }
`,
    ),
  );
  key = await testbed.gateway.createKey();
});
afterAll(() => testbed?.stop());

const DEVICE = "5dd07c33".repeat(8);
const ACCOUNT = "3f4a1b7c-0000-4000-8000-1234567890ab";
const SESSION = "2c4e1cf0-7a67-4d2e-9a4b-1d16d3f44752";

interface Way {
  readonly way: string;
  readonly fields?: (name: string) => object;
  readonly header?: string;
}

const WAYS: readonly Way[] = [
  { way: "user", fields: (name) => ({ user: name }) },
  {
    way: "metadata.user_id",
    fields: (name) => ({ metadata: { user_id: name } }),
  },
  {
    way: "litellm_metadata.user",
    fields: (name) => ({ litellm_metadata: { user: name } }),
  },
  {
    way: "metadata as text",
    fields: (name) => ({ metadata: JSON.stringify({ user_id: name }) }),
  },
  {
    way: "litellm_metadata as text",
    fields: (name) => ({ litellm_metadata: JSON.stringify({ user: name }) }),
  },
  {
    way: "safety_identifier",
    fields: (name) => ({ safety_identifier: name }),
  },
  { way: "x-litellm-end-user-id", header: "x-litellm-end-user-id" },
  { way: "x-litellm-customer-id", header: "x-litellm-customer-id" },
];

const MESSAGES = [{ role: "user", content: "hello" }];
const DIALECTS = [
  { path: "/v1/chat/completions", body: { messages: MESSAGES } },
  { path: "/v1/messages", body: { messages: MESSAGES, max_tokens: 9 } },
  { path: "/v1/responses", body: { input: "hello" } },
  { path: "/v1/completions", body: { prompt: "hello" } },
  { path: "/v1/embeddings", body: { input: "hello" } },
  { path: "/v1/images/generations", body: { prompt: "hello" } },
  { path: "/v1/moderations", body: { input: "hello" } },
  { path: "/v1/audio/speech", body: { input: "hello", voice: "alloy" } },
  { path: "/v1/rerank", body: { query: "hello", documents: ["hello"] } },
];

async function ledgerRow(callId: string | null) {
  await testbed.gateway.running.gateway.ledger.flush();
  const { json } = await testbed.gateway.request(
    "GET",
    `/spend/logs?request_id=${callId}`,
  );
  return json[0];
}

function call(
  path: string,
  body: object,
  headers: Record<string, string> = {},
) {
  return testbed.gateway.request("POST", path, body, key, headers);
}

for (const { path, body } of DIALECTS) {
  test.each(WAYS)(
    `POST ${path} attributes a call to the end user of $way`,
    async ({ way, fields, header }) => {
      const name = `anna of ${path} by ${way}`;
      const answer = await call(
        path,
        { model: "claude", ...body, ...fields?.(name) },
        header === undefined ? {} : { [header]: name },
      );
      expect([answer.status, answer.text.slice(0, 200)]).toEqual([
        200,
        expect.any(String),
      ]);
      const row = await ledgerRow(answer.headers.get("x-hearth-call-id"));
      expect(row?.["end_user"]).toBe(name);
    },
  );
}

test.each(WAYS)(
  "the budget of an end user named by $way is enforced",
  async ({ way, fields, header }) => {
    const name = `limited by ${way}`;
    await testbed.gateway.request("POST", "/customer/new", {
      user_id: name,
      max_budget: 0.000001,
    });
    const ask = () =>
      call(
        "/v1/messages",
        {
          model: "claude",
          messages: [{ role: "user", content: crypto.randomUUID() }],
          max_tokens: 9,
          ...fields?.(name),
        },
        header === undefined ? {} : { [header]: name },
      );
    expect((await ask()).status).toBe(200);
    const over = await ask();
    expect([over.status, over.text]).toEqual([
      400,
      expect.stringContaining("Budget has been exceeded"),
    ]);
    await testbed.gateway.running.gateway.ledger.flush();
    const info = await testbed.gateway.request(
      "GET",
      `/customer/info?end_user_id=${encodeURIComponent(name)}`,
    );
    expect(Number(info.json["spend"])).toBeGreaterThan(0);
  },
);

test("a header takes precedence over the body, and `user` over metadata", async () => {
  const body = {
    model: "claude",
    messages: MESSAGES,
    user: "second",
    litellm_metadata: { user: "third" },
    metadata: { user_id: "fourth" },
  };
  const path = "/v1/chat/completions";
  const first = await call(path, body, { "x-litellm-customer-id": "first" });
  const second = await call(path, body);
  const { user: _, ...rest } = body;
  const third = await call(path, rest);
  const names = [];
  for (const answer of [first, second, third]) {
    const row = await ledgerRow(answer.headers.get("x-hearth-call-id"));
    names.push(row?.["end_user"]);
  }
  expect(names).toEqual(["first", "second", "third"]);
});

test.each([
  [
    `user_${DEVICE}_account_${ACCOUNT}_session_${SESSION}`,
    `user_${DEVICE}_account_${ACCOUNT}`,
  ],
  [`user_${DEVICE}_account__session_${SESSION}`, `user_${DEVICE}`],
  [
    JSON.stringify({
      device_id: DEVICE,
      account_uuid: ACCOUNT,
      session_id: SESSION,
    }),
    `user_${DEVICE}_account_${ACCOUNT}`,
  ],
])(
  "Claude Code's sessions are those of one end user (%#)",
  async (sent, name) => {
    const answer = await call("/v1/messages", {
      model: "claude",
      messages: MESSAGES,
      max_tokens: 9,
      metadata: { user_id: sent },
    });
    expect(answer.status).toBe(200);
    const row = await ledgerRow(answer.headers.get("x-hearth-call-id"));
    expect(row?.["end_user"]).toBe(name);
    expect(row?.["session_id"]).toBe(SESSION);
  },
);

test("an end user who was not created before is shown with its spend after its first call", async () => {
  await call("/v1/messages", {
    model: "claude",
    messages: MESSAGES,
    max_tokens: 9,
    metadata: { user_id: "newcomer" },
  });
  await testbed.gateway.running.gateway.ledger.flush();
  const info = await testbed.gateway.request(
    "GET",
    "/customer/info?end_user_id=newcomer",
  );
  expect(info.status).toBe(200);
  expect(info.json["user_id"]).toBe("newcomer");
  expect(info.json["blocked"]).toBe(false);
  expect(Number(info.json["spend"])).toBeGreaterThan(0);
  const unknown = await testbed.gateway.request(
    "GET",
    "/customer/info?end_user_id=nobody",
  );
  expect(unknown.status).toBe(404);
});

test("metadata that is no object is rejected by name", async () => {
  for (const field of ["metadata", "litellm_metadata"]) {
    const answer = await call("/v1/chat/completions", {
      model: "claude",
      messages: MESSAGES,
      [field]: "no JSON",
    });
    expect(answer.status).toBe(400);
    expect(answer.json["error"]?.["param"]).toBe(field);
  }
});
