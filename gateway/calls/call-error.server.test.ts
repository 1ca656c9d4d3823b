import { afterAll, beforeAll, expect, test } from "vitest";
import {
  modelYaml,
  startTestbed,
  type TestAnswer,
  type Testbed,
} from "../../test/servers/gateway.ts";
import { query } from "../database/pool.ts";

let dialect: Testbed;
let plain: Testbed;

const SETTINGS = "router_settings: { num_retries: 1 }\n";

beforeAll(async () => {
  [dialect, plain] = await Promise.all([
    startTestbed(
      (url) =>
        `${modelYaml(url)}${SETTINGS}proxy_settings: { litellm_headers: true }\n`,
    ),
    startTestbed((url) => modelYaml(url) + SETTINGS),
  ]);
});

afterAll(() => Promise.all([dialect?.stop(), plain?.stop()]));

const UUID = /^[0-9a-f-]{36}$/;

function expectBothIds({ headers }: TestAnswer): string {
  const id = headers.get("x-hearth-call-id") ?? "";
  expect(id).toMatch(UUID);
  expect(headers.get("x-litellm-call-id")).toBe(id);
  return id;
}

test("a rejection before any provider has the headers of an answer", async () => {
  const { gateway } = dialect;
  const key = await gateway.createKey({ max_budget: 5e-10 });
  const { headers } = await gateway.chat(key, "first");
  expect(headers.get("x-litellm-key-max-budget")).toBe("5e-10");
  const refused = await gateway.chat(key, "second");
  expect(refused.status).toBe(400);
  expect(refused.json["error"]?.["message"]).toMatch(
    /^Budget has been exceeded! Current cost: [\d.e-]+, Max budget: 5e-10$/,
  );
  expectBothIds(refused);
  const litellm = (name: string) => refused.headers.get(`x-litellm-${name}`);
  expect(litellm("model-group")).toBe("mock");
  expect(litellm("attempted-retries")).toBe("0");
  expect(litellm("max-retries")).toBe("1");
  expect(litellm("key-max-budget")).toBe("5e-10");
  expect(Number(litellm("key-spend"))).toBeGreaterThan(0);
});

test("a rate limit has ids, the time to wait and the remaining requests", async () => {
  const { gateway } = dialect;
  const key = await gateway.createKey({ rpm_limit: 1 });
  await gateway.chat(key, "first");
  const refused = await gateway.chat(key, "second");
  expect(refused.status).toBe(429);
  expectBothIds(refused);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(refused.headers.get("x-ratelimit-remaining-requests")).toBe("0");
});

test("a provider's failure names its deployment, the attempts and its row", async () => {
  const { gateway } = dialect;
  const key = await gateway.createKey({ max_budget: 1, rpm_limit: 9 });
  const failed = await gateway.chat(key, '[mock]{"status":500}');
  expect(failed.status).toBe(500);
  const id = expectBothIds(failed);
  const litellm = (name: string) => failed.headers.get(`x-litellm-${name}`);
  expect(litellm("attempted-retries")).toBe("1");
  expect(litellm("attempted-fallbacks")).toBe("0");
  expect(litellm("key-spend")).toBe("0");
  expect(failed.headers.get("x-ratelimit-remaining-requests")).toBe("8");
  await gateway.running.gateway.ledger.flush();
  const [row] = await query<{ model_id: string }>(
    gateway.running.gateway.pool,
    "SELECT model_id FROM spend_log WHERE request_id = $1",
    [id],
  );
  expect(litellm("model-id")).toBe(row?.model_id);
});

test.each([
  ["an unknown key", { key: "sk-unknown-key-of-the-tests" }, 401],
  ["an unknown model", { body: { model: "none", messages: [] } }, 400],
  ["a body that is not JSON", { body: "{" }, 400],
  ["an invalid field", { body: { model: "mock", messages: 1 } }, 400],
])("%s is rejected with the id of the call", async (_, given, status) => {
  const { gateway } = dialect;
  const { key, body } = { key: undefined, body: {}, ...given };
  const path = "/v1/chat/completions";
  const rejected = await gateway.request("POST", path, body, key);
  expect(rejected.status).toBe(status);
  expectBothIds(rejected);
});

test.each([
  [400, "bad input", "litellm.BadRequestError: "],
  [
    400,
    "maximum context length exceeded",
    "litellm.ContextWindowExceededError: litellm.BadRequestError: ",
  ],
  [
    400,
    "Your request was rejected as a result of our safety system.",
    "litellm.ContentPolicyViolationError: litellm.BadRequestError: ",
  ],
  [429, "slow down", "litellm.RateLimitError: "],
])(
  "a provider's %d (%s) names LiteLLM's class in the dialect only",
  async (status, message, prefix) => {
    const prompt = `[mock]${JSON.stringify({ status, error: message })}`;
    for (const [testbed, starts] of [
      [dialect, `${prefix}mock: `],
      [plain, "mock: "],
    ] as const) {
      const { gateway } = testbed;
      const failed = await gateway.chat(await gateway.createKey(), prompt);
      expect(failed.status).toBe(status);
      const text = String(failed.json["error"]?.["message"]);
      expect(text.slice(0, starts.length)).toBe(starts);
    }
  },
);

test("a prompt that is too long has OpenAI's code, on which agents shorten it; other failures have their status", async () => {
  const { gateway } = plain;
  const key = await gateway.createKey();
  const codeOf = async (path: string, stream: boolean, error: string) => {
    const prompt = `[mock]${JSON.stringify({ status: 400, error })}`;
    const asked =
      path === "responses"
        ? { input: prompt }
        : { messages: [{ role: "user", content: prompt }] };
    const body = { model: "mock", stream, ...asked };
    const failed = await gateway.request("POST", `/v1/${path}`, body, key);
    expect(failed.status).toBe(400);
    return failed.json["error"]?.["code"];
  };
  const tooLong = "Your input exceeds the context window of this model.";
  for (const path of ["chat/completions", "responses"]) {
    for (const stream of [true, false]) {
      expect(await codeOf(path, stream, tooLong)).toBe(
        "context_length_exceeded",
      );
      expect(await codeOf(path, stream, "bad input")).toBe("400");
    }
  }
});

test("a denied model names LiteLLM's class in the dialect only: its SDK has no class for 403 otherwise", async () => {
  for (const [testbed, starts] of [
    [dialect, "litellm.PermissionDeniedError: key not allowed"],
    [plain, "key not allowed"],
  ] as const) {
    const { gateway } = testbed;
    const key = await gateway.createKey({ models: ["another"] });
    const denied = await gateway.chat(key, "hello");
    expect(denied.status).toBe(403);
    const text = String(denied.json["error"]?.["message"]);
    expect(text.slice(0, starts.length)).toBe(starts);
  }
});

test("without the dialect an error has only the gateway's own headers", async () => {
  const { gateway } = plain;
  const refused = await gateway.chat("sk-unknown-key-of-the-tests", "hello");
  expect(refused.headers.get("x-hearth-call-id")).toMatch(UUID);
  expect(refused.text).not.toContain("litellm");
  const names = [...refused.headers.keys()];
  expect(names.filter((name) => name.startsWith("x-litellm"))).toEqual([]);
});

test("a model that is not allowed is rejected in the words that clients look for", async () => {
  const { gateway } = plain;
  const team = await gateway.request("POST", "/team/new", {
    models: ["other"],
  });
  for (const [fields, type, says] of [
    [
      { models: ["other"] },
      "key_model_access_denied",
      "key not allowed to access model mock. Allowed models: other.",
    ],
    [
      { team_id: team.json["team_id"] },
      "team_model_access_denied",
      "team not allowed to access model mock. Allowed models of team ",
    ],
  ] as const) {
    const key = await gateway.createKey(fields);
    const refused = await gateway.chat(key, "hello");
    expect(refused.status).toBe(403);
    expect(refused.json["error"]).toMatchObject({ type, param: "model" });
    expect(refused.json["error"]?.["message"]).toContain(says);
  }
});
