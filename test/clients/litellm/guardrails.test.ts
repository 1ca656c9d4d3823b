import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { modelYaml, type TestGateway } from "../../servers/gateway.ts";
import { caught, collected } from "../testbed.ts";
import {
  startTwoInstances,
  WITHIN,
  type TwoInstances,
} from "./two-instances.ts";

/** As in LiteLLM's documentation of guardrails, content filter and secrets. */
const GUARDRAILS = `
guardrails:
  - guardrail_name: content-filter-pre
    litellm_params:
      guardrail: litellm_content_filter
      mode: pre_call
      patterns:
        - { pattern_type: prebuilt, pattern_name: us_ssn, action: BLOCK }
        - { pattern_type: prebuilt, pattern_name: email, action: MASK }
      blocked_words:
        - { keyword: confidential, action: BLOCK, description: Sensitive internal information }
  - guardrail_name: no-words
    litellm_params:
      guardrail: litellm_content_filter
      mode: post_call
      stream_window: 5
      blocked_words: [{ keyword: word3 }]
    guardrail_info:
      params: [{ name: toxicity_score, type: float }]
litellm_settings: { litellm_headers: true }
`;

let instances: TwoInstances;

beforeAll(async () => {
  instances = await startTwoInstances(
    (url) =>
      modelYaml(
        url,
        `
  - model_name: claude
    litellm_params: { model: openai/m, api_base: "${url}", api_key: x, guardrails: [no-words] }`,
      ) + GUARDRAILS,
  );
});
afterAll(() => instances?.stop());

const clientOf = (gateway: TestGateway, apiKey: string) =>
  new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
const ask = (content: string, guardrails?: readonly string[]) => ({
  model: "mock",
  messages: [{ role: "user" as const, content }],
  ...(guardrails === undefined ? {} : { guardrails }),
});

test("a blocked prompt is a BadRequestError of OpenAI's client, and the header names the guardrail", async () => {
  const client = clientOf(instances.one, await instances.one.createKey());
  const before = instances.provider.requests.length;
  const error = (await caught(
    client.chat.completions.create(
      ask("My SSN is 123-45-6789", ["content-filter-pre"]),
    ),
  )) as InstanceType<typeof OpenAI.BadRequestError>;
  expect(error).toBeInstanceOf(OpenAI.BadRequestError);
  expect(error.message).toContain(
    "Content blocked by guardrail content-filter-pre: us_ssn found",
  );
  expect(error.code).toBe("400");
  expect(error.headers?.get("x-litellm-applied-guardrails")).toBe(
    "content-filter-pre",
  );
  expect(error.headers?.get("x-litellm-call-id")).toBeTruthy();
  expect(instances.provider.requests.length).toBe(before);
});

test("a masked prompt reaches the provider with LiteLLM's tag", async () => {
  const client = clientOf(instances.one, await instances.one.createKey());
  const { response } = await client.chat.completions
    .create(ask("Contact me at john@example.com", ["content-filter-pre"]))
    .withResponse();
  expect(response.headers.get("x-litellm-applied-guardrails")).toBe(
    "content-filter-pre",
  );
  expect(instances.provider.requests.at(-1)?.body["messages"]).toEqual([
    { role: "user", content: "Contact me at [EMAIL_REDACTED]" },
  ]);
});

test("guardrails of a key hold on every instance within a second, and after an update", async () => {
  const key = await instances.one.createKey({
    guardrails: ["content-filter-pre"],
  });
  const client = clientOf(instances.other, key);
  const secret = ask("it is confidential");
  expect(await caught(client.chat.completions.create(secret))).toBeInstanceOf(
    OpenAI.BadRequestError,
  );
  const info = await instances.other.request("GET", `/key/info?key=${key}`);
  expect(info.json["info"]?.["guardrails"]).toEqual(["content-filter-pre"]);
  const updated = await instances.one.request("POST", "/key/update", {
    key,
    guardrails: null,
  });
  expect(updated.json["guardrails"]).toEqual([]);
  await expect
    .poll(
      async () => (await instances.other.chat(key, "confidential")).status,
      WITHIN,
    )
    .toBe(200);
});

test("a key that guardrails check may not create keys without them", async () => {
  const user = "guarded-user";
  const key = await instances.one.createKey({
    user_id: user,
    guardrails: ["content-filter-pre"],
  });
  const created = await instances.one.request(
    "POST",
    "/key/generate",
    { user_id: user },
    key,
  );
  expect(created.status).toBe(403);
});

test("a stream that is blocked fails in OpenAI's and Anthropic's clients, and what came before was received", async () => {
  const apiKey = await instances.one.createKey();
  const instructions = '[mock]{"chunks":8,"chunkDelayMs":20}';
  const received: string[] = [];
  const stream = await clientOf(instances.one, apiKey).chat.completions.create({
    ...ask(instructions, ["no-words"]),
    stream: true,
  });
  const failure = await caught(
    (async () => {
      for await (const chunk of stream) {
        received.push(chunk.choices[0]?.delta.content ?? "");
      }
    })(),
  );
  expect(String(failure)).toContain("Content blocked by guardrail no-words");
  expect(received.join("")).toMatch(/^word0 /);
  expect(received.join("")).not.toContain("word3");

  const anthropic = new Anthropic({
    apiKey,
    baseURL: instances.one.url,
    maxRetries: 0,
  });
  const events = anthropic.messages.create({
    model: "claude",
    max_tokens: 9,
    stream: true,
    messages: [{ role: "user", content: instructions }],
  });
  expect(String(await caught(events.then(collected)))).toContain(
    "Content blocked by guardrail no-words",
  );
});

test("the list has LiteLLM's shape, and a guardrail is applied to a text", async () => {
  const key = await instances.one.createKey();
  const list = await instances.one.request(
    "GET",
    "/guardrails/list",
    undefined,
    key,
  );
  expect(list.json["guardrails"]?.[1 as never]).toEqual({
    guardrail_name: "no-words",
    litellm_params: {
      guardrail: "litellm_content_filter",
      mode: ["post_call"],
      default_on: false,
    },
    guardrail_info: { params: [{ name: "toxicity_score", type: "float" }] },
  });
  const apply = (text: string) =>
    instances.one.request(
      "POST",
      "/guardrails/apply_guardrail",
      { guardrail_name: "content-filter-pre", text, language: "en" },
      key,
    );
  expect((await apply("mail john@example.com")).json).toEqual({
    response_text: "mail [EMAIL_REDACTED]",
  });
  expect((await apply("confidential")).status).toBe(400);
});
