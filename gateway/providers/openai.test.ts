import { expect, test } from "vitest";
import type { CallBody } from "../calls/body.ts";
import { PROVIDERS } from "../config/providers.ts";
import { createStreamReader, openaiRequest } from "./openai.ts";
import { openaiWire } from "./openai-wire.ts";
import { testDeployment } from "./stream-fixture.ts";

const LOCAL = { providerName: "ollama", model: "qwen3:8b" };
const AZURE = { provider: "azure", providerName: "azure" } as const;
const REASONING = { model: "gpt-5-mini" };

test.each([
  ["OpenAI's reasoning models", REASONING, "max_completion_tokens"],
  [
    "a deployment of Azure with one",
    { ...AZURE, model: "mine", baseModel: "o4-mini" },
    "max_completion_tokens",
  ],
  ["Ollama", LOCAL, "max_tokens"],
  ["Mistral", { providerName: "mistral", model: "large" }, "max_tokens"],
  [
    "a local server of OpenAI's API",
    { model: "gpt-oss-20b", local: true },
    "max_tokens",
  ],
])("%s get the limit of a chat by the name they read", (_, fields, name) => {
  const sentOf = (body: object, defaults: Record<string, unknown> = {}) =>
    openaiRequest(
      "chat",
      { model: "alias", ...body },
      testDeployment({ ...fields, defaults }),
      false,
    );
  const model = testDeployment(fields).model;
  expect(sentOf({ max_tokens: 7 })).toEqual({ model, [name]: 7 });
  expect(sentOf({ max_completion_tokens: 7 })).toEqual({ model, [name]: 7 });
  const both = { max_completion_tokens: 7, max_tokens: 9 };
  expect(sentOf(both)).toEqual({ model, [name]: 7 });
  expect(sentOf({}, { max_tokens: 5 })).toEqual({ model, [name]: 5 });
  expect(sentOf({ max_tokens: 7 }, { max_completion_tokens: 5 })).toEqual({
    model,
    [name]: 7,
  });
  expect(sentOf({})).toEqual({ model });
});

test("a server that reads both names gets no default beside the limit of a call", () => {
  const deployment = testDeployment({
    defaults: { max_completion_tokens: 1_000 },
  });
  const sentOf = (fields: object) =>
    openaiRequest("chat", { model: "alias", ...fields }, deployment, false);
  expect(sentOf({ max_tokens: 7 })).toEqual({
    model: "model-1",
    max_tokens: 7,
  });
  expect(sentOf({})).toEqual({
    model: "model-1",
    max_completion_tokens: 1_000,
  });
});

test("Responses get a deployment's defaults by their own names", () => {
  const deployment = testDeployment({
    model: "gpt-5.6",
    providerName: "openai",
    defaults: {
      max_tokens: 1_000,
      reasoning_effort: "low",
      stop: ["."],
      seed: 1,
    },
  });
  const sentOf = (fields: object) =>
    openaiWire.request(
      "responses",
      { model: "alias", input: "Hello", ...fields },
      deployment,
      false,
    );
  expect(sentOf({})).toEqual({
    model: "gpt-5.6",
    input: "Hello",
    max_output_tokens: 1_000,
    reasoning: { effort: "low" },
    store: false,
  });
  expect(
    sentOf({ max_output_tokens: 7, reasoning: { effort: "high" } }),
  ).toMatchObject({ max_output_tokens: 7, reasoning: { effort: "high" } });
});

test("other models of OpenAI's API read both names, and legacy completions only the old one", () => {
  const body = { model: "alias", max_tokens: 7 };
  expect(openaiRequest("chat", body, testDeployment(), false)).toEqual({
    model: "model-1",
    max_tokens: 7,
  });
  const reasoning = testDeployment(REASONING);
  expect(openaiRequest("completions", body, reasoning, false)).toEqual({
    model: "gpt-5-mini",
    max_tokens: 7,
  });
});

const SAMPLING = {
  temperature: 0,
  top_p: 0.5,
  presence_penalty: 0.1,
  frequency_penalty: -0.1,
  logit_bias: { "1": 1 },
  logprobs: true,
  top_logprobs: 2,
};
const NEUTRAL = {
  temperature: 1,
  top_p: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  logit_bias: {},
  logprobs: false,
  top_logprobs: 0,
};

test.each([
  ["gpt-5-mini", {}, true],
  ["gpt-5-2025-08-07", { reasoning_effort: "minimal" }, true],
  ["o4-mini", {}, true],
  ["gpt-5.2", { reasoning_effort: "high" }, true],
  ["gpt-5.2", { reasoning_effort: "none" }, false],
  ["gpt-5.2", {}, false],
  ["gpt-5.5", {}, true],
  ["gpt-5.6-sol", { reasoning_effort: "none" }, false],
  ["gpt-6-astra", {}, true],
  ["gpt-5.4-pro", {}, true],
  ["gpt-5-chat-latest", {}, false],
  ["gpt-4.1", {}, false],
])(
  "%s with %j: other values of sampling are unsupported: %s",
  (model, fields, is) => {
    const body = { model: "alias", ...SAMPLING, ...fields };
    const lackingAt = (place: object, asked: CallBody) => {
      const deployment = testDeployment({ model, ...place });
      const lacks = openaiWire.unsupported("chat", asked, deployment);
      const sent = openaiWire.request("chat", asked, deployment, false);
      expect(lacks.filter((name) => name in sent)).toEqual([]);
      return lacks;
    };
    const openai = { apiBase: PROVIDERS["openai"]?.apiBase ?? "" };
    const refused = is ? Object.keys(SAMPLING) : [];
    expect(lackingAt(openai, body)).toEqual(refused);
    expect(lackingAt({ provider: "azure" }, body)).toEqual(refused);
    expect(lackingAt(openai, { ...body, ...NEUTRAL })).toEqual([]);
    const ofOthers = { ...body, top_k: 64 };
    expect(lackingAt(openai, ofOthers)).toEqual(["top_k", ...refused]);
    // What another server does with a model of this name is not known.
    expect(lackingAt({}, ofOthers)).toEqual([]);
  },
);

test.each([
  ["gpt-5-mini", true],
  ["gpt-5.2", true],
  ["gpt-6-luna", true],
  ["o3", true],
  ["o4-mini", true],
  ["o3-mini", false],
  ["gpt-5-chat-latest", false],
  ["gpt-4.1", false],
])("%s takes no stop: %s", (model, is) => {
  const deployment = testDeployment({
    model,
    apiBase: PROVIDERS["openai"]?.apiBase ?? "",
  });
  const lacking = (stop: unknown) =>
    openaiWire.unsupported("chat", { model: "alias", stop }, deployment);
  expect(lacking(["."])).toEqual(is ? ["stop"] : []);
  expect(lacking([])).toEqual([]);
});

const ASKED = {
  temperature: 0.2,
  top_p: 0.5,
  n: 2,
  presence_penalty: 0.5,
  frequency_penalty: 0.5,
  stop: ["."],
  reasoning_effort: "high",
  web_search_options: {},
};
const PENALTIES = ["presence_penalty", "frequency_penalty"];

test.each([
  ["xai", "grok-3", ["reasoning_effort", "web_search_options"]],
  ["xai", "grok-3-mini", [...PENALTIES, "stop", "web_search_options"]],
  ["xai", "grok-4.6", [...PENALTIES, "stop", "web_search_options"]],
  [
    "xai",
    "grok-4-0709",
    [...PENALTIES, "stop", "reasoning_effort", "web_search_options"],
  ],
  ["moonshot", "kimi-k2.6", ["temperature", "top_p", "n", ...PENALTIES]],
  ["moonshot", "kimi-k2-thinking", []],
  [
    "openai",
    "gpt-4o-search-preview",
    ["temperature", "top_p", "n", ...PENALTIES, "reasoning_effort"],
  ],
])("%s's %s rejects certain parameters", (providerName, model, refused) => {
  const deployment = testDeployment({ providerName, model });
  const sentWith = (fields: object) =>
    openaiWire.request("chat", { model: "m", ...fields }, deployment, false);
  const lacking = (fields: object) =>
    openaiWire.unsupported("chat", { model: "m", ...fields }, deployment);
  expect([...lacking(ASKED)].sort()).toEqual([...refused].sort());
  const accepted = Object.keys(ASKED).filter((name) => !refused.includes(name));
  expect(Object.keys(sentWith(ASKED)).sort()).toEqual(
    ["model", ...accepted].sort(),
  );
  // Also zero is an error there, and many clients send it.
  const zero = { presence_penalty: 0, frequency_penalty: 0 };
  expect(lacking(zero)).toEqual([]);
  expect(Object.hasOwn(sentWith(zero), "presence_penalty")).toBe(
    !refused.includes("presence_penalty"),
  );
});

test.each([
  ["xai", "grok-4-fast", true],
  ["xai", "grok-code-fast-1", true],
  // Answered by Grok 4.3: https://github.com/router-for-me/CLIProxyAPI/pull/3968
  ["xai", "grok-4", false],
  ["xai", "grok-4.3", false],
  ["openai", "gpt-4.1", true],
  ["openai", "gpt-5.2", false],
  ["openrouter", "gpt-4.1", false],
])("%s's %s rejects an effort in Responses: %s", (providerName, model, is) => {
  const apiBase = PROVIDERS[providerName]?.apiBase ?? "";
  const deployment = testDeployment({ providerName, model, apiBase });
  const sentWith = (fields: object) =>
    openaiWire.request(
      "responses",
      { model: "m", ...fields },
      deployment,
      false,
    );
  const lacking = (fields: object) =>
    openaiWire.unsupported("responses", { model: "m", ...fields }, deployment);
  const effort = { reasoning: { effort: "high" } };
  const both = { reasoning: { effort: "high", summary: "auto" } };
  expect(lacking(effort)).toEqual(is ? ["reasoning.effort"] : []);
  expect(lacking({})).toEqual([]);
  expect(lacking({ reasoning: { summary: "auto" } })).toEqual([]);
  expect(sentWith(effort)["reasoning"]).toEqual(
    is ? undefined : effort.reasoning,
  );
  expect(sentWith(both)["reasoning"]).toEqual(
    is ? { summary: "auto" } : both.reasoning,
  );
});

test.each([
  ["openai", "gpt-5-mini", { type: "enabled", budget_tokens: 2_000 }, "low"],
  ["openai", "gpt-5.2", { type: "disabled" }, "none"],
  ["openai", "gpt-5-mini", { type: "adaptive" }, undefined],
  ["groq", "openai/gpt-oss-120b", { type: "disabled" }, "low"],
  ["openai", "gpt-4.1", { type: "enabled", budget_tokens: 2_000 }, null],
  ["openai", "gpt-4.1", { type: "disabled" }, undefined],
  ["mistral", "mistral-large-latest", { type: "enabled" }, null],
])(
  "%s's %s gets Anthropic's thinking %j as the effort %s",
  (providerName, model, thinking, effort) => {
    const apiBase = PROVIDERS[providerName]?.apiBase ?? "";
    const deployment = testDeployment({ providerName, model, apiBase });
    const body = { model: "m", thinking };
    const sent = openaiWire.request("chat", body, deployment, false);
    expect(sent).toEqual({
      model,
      ...(typeof effort === "string" ? { reasoning_effort: effort } : {}),
    });
    expect(openaiWire.unsupported("chat", body, deployment)).toEqual(
      effort === null ? ["thinking"] : [],
    );
    const both = { ...body, reasoning_effort: "high" };
    if (typeof effort === "string") {
      expect(openaiWire.request("chat", both, deployment, false)).toEqual({
        model,
        reasoning_effort: "high",
      });
    }
  },
);

test("servers that are not Google's lack Gemini's own parameters", () => {
  const extra_body = { google: { cached_content: "c" } };
  const body = { model: "m", extra_body };
  const at = (apiBase: string) => {
    const deployment = testDeployment({ apiBase });
    return {
      lacks: openaiWire.unsupported("chat", body, deployment),
      sent: openaiWire.request("chat", body, deployment, false)["extra_body"],
    };
  };
  expect(at("https://api.example.com/v1")).toEqual({
    lacks: ["extra_body"],
    sent: undefined,
  });
  const vertex = "https://aiplatform.googleapis.com/v1/projects/p/openapi";
  expect(at(vertex)).toEqual({ lacks: [], sent: extra_body });
});

test("Kimi's own values of sampling are left to it, whether it thinks or not", () => {
  const deployment = testDeployment({
    providerName: "moonshot",
    model: "kimi-k2.5",
  });
  const body = { model: "m", temperature: 0.6, top_p: 0.95 };
  expect(openaiWire.unsupported("chat", body, deployment)).toEqual([]);
  expect(openaiWire.request("chat", body, deployment, false)).toEqual({
    model: "kimi-k2.5",
  });
});

// Clients of Gemini's API send `none` and `minimal`, whichever model answers.
test.each([
  ["gpt-5-mini", "none", "minimal"],
  ["gpt-5-2025-08-07", "minimal", "minimal"],
  ["gpt-5-codex", "minimal", "low"],
  ["o4-mini", "none", "low"],
  ["o4-mini", "minimal", "low"],
  ["gpt-5.2", "none", "none"],
  ["gpt-5.4-pro", "none", "low"],
  ["gpt-6-astra", "none", "low"],
  ["gpt-6-luna", "none", "none"],
  ["gpt-5.2", "minimal", "low"],
  ["gpt-5.2", "xhigh", "xhigh"],
  ["gpt-5-mini", "xhigh", "high"],
  ["o3", "max", "high"],
  ["gpt-5.2", "max", "xhigh"],
  ["gpt-6-sol", "max", "max"],
  ["gpt-5.2-chat-latest", "medium", "medium"],
  ["gpt-5.2-chat-latest", "none", undefined],
  ["gpt-4.1", "low", undefined],
])("%s gets the effort %s as %s", (model, effort, sent) => {
  const body = { model: "alias", reasoning_effort: effort };
  const openai = { apiBase: PROVIDERS["openai"]?.apiBase ?? "" };
  const effortAt = (place: object) => {
    const deployment = testDeployment({ model, ...place });
    const asked = openaiWire.request("chat", body, deployment, false);
    const lacks = openaiWire.unsupported("chat", body, deployment);
    expect(lacks.includes("reasoning_effort")).toBe(
      asked["reasoning_effort"] === undefined,
    );
    return asked["reasoning_effort"];
  };
  expect(effortAt(openai)).toBe(sent);
  expect(effortAt({ ...AZURE, baseModel: model, model: "mine" })).toBe(sent);
  // What another server does with a model of this name is not known.
  expect(effortAt({})).toBe(effort);
});

test("zeros after the usage of a stream replace nothing", () => {
  const reader = createStreamReader();
  for (const [input, output] of [
    [0, 0],
    [19, 13],
    [0, 0],
  ]) {
    const usage = { prompt_tokens: input, completion_tokens: output };
    const data = JSON.stringify({ choices: [], usage });
    expect(reader.read({ event: null, data })).toBe("usage_only");
  }
  expect(reader.facts().usage).toMatchObject({
    inputTokens: 19,
    outputTokens: 13,
  });
});

test("usage that a stream reports inside its last choice counts, as Moonshot's does", () => {
  const reader = createStreamReader();
  const read = (chunk: object) =>
    reader.read({ event: null, data: JSON.stringify(chunk) });
  const usage = { prompt_tokens: 19, completion_tokens: 13 };
  const last = { index: 0, delta: {}, finish_reason: "stop", usage };
  expect(read({ choices: [{ index: 0, delta: { content: "hi" } }] })).toBe(
    "pass",
  );
  expect(read({ choices: [last] })).toBe("pass");
  expect(reader.facts().usage).toMatchObject({
    inputTokens: 19,
    outputTokens: 13,
  });
});
