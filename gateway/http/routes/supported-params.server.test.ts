import { afterAll, beforeAll, expect, test } from "vitest";
import {
  modelYaml,
  startTestbed,
  type Testbed,
} from "../../../test/servers/gateway.ts";

let testbed: Testbed;

beforeAll(async () => {
  testbed = await startTestbed((url) =>
    modelYaml(
      url,
      `
  - model_name: claude
    provider_params: { model: anthropic/claude-3-5-haiku-20241022, api_base: ${url}, api_key: x }
  - model_name: gemini
    provider_params: { model: gemini/gemini-3.8-flash, api_key: x }
  - model_name: pro
    provider_params: { model: openai/gpt-5-pro, api_key: x }
  - model_name: either
    provider_params: { model: anthropic/claude-3-5-haiku-20241022, api_base: ${url}, api_key: x }
  - model_name: either
    provider_params: { model: openai/m, api_base: ${url}, api_key: x }
`,
    ),
  );
});

afterAll(() => testbed?.stop());

async function paramsOf(model: string, key?: string) {
  const path = `/utils/supported_openai_params?model=${model}`;
  return testbed.gateway.request("GET", path, undefined, key);
}

async function listOf(model: string): Promise<unknown> {
  return (await paramsOf(model)).json["supported_openai_params"];
}

const SHARED = [
  "max_completion_tokens",
  "max_tokens",
  "parallel_tool_calls",
  "response_format",
  "stop",
  "stream",
  "temperature",
  "tool_choice",
  "tools",
  "top_p",
  "web_search_options",
];
const OF_OPENAI = ["frequency_penalty", "logit_bias", "n", "seed"];

test("the parameters of a model are those that its provider takes", async () => {
  expect(await listOf("mock")).toEqual(
    expect.arrayContaining([...SHARED, ...OF_OPENAI]),
  );
  expect(await listOf("gemini")).toContain("web_search_options");
  // It has no chat: its Responses API lacks them.
  const pro = await listOf("pro");
  expect(pro).toEqual(expect.arrayContaining(["tools", "verbosity"]));
  expect(pro).not.toContain("seed");
  expect(pro).not.toContain("logit_bias");
  const claude = await listOf("claude");
  expect(claude).toEqual(expect.arrayContaining(SHARED));
  for (const name of OF_OPENAI) {
    expect(claude).not.toContain(name);
  }
});

test("they agree with what a call accepts", async () => {
  for (const [name, value] of [
    ["n", 2],
    ["logit_bias", { "1": 1 }],
    ["seed", 1],
  ] as const) {
    const answer = await testbed.gateway.request(
      "POST",
      "/v1/chat/completions",
      {
        model: "claude",
        messages: [{ role: "user", content: "hello" }],
        [name]: value,
      },
    );
    expect([name, answer.status, answer.json["error"]?.["param"]]).toEqual([
      name,
      400,
      name,
    ]);
  }
});

test("one deployment that takes a parameter is enough", async () => {
  expect(await listOf("either")).toEqual(await listOf("mock"));
});

test("a model that is unknown, missing or not allowed is an error", async () => {
  expect((await paramsOf("nothing")).status).toBe(400);
  expect((await paramsOf("")).json["error"]).toMatchObject({ param: "model" });
  const key = await testbed.gateway.createKey({ models: ["claude"] });
  expect((await paramsOf("mock", key)).status).toBe(403);
});
