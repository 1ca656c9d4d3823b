import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PROVIDERS } from "../config/providers.ts";
import {
  parseRecord,
  recordOf,
  recordsOf,
  type JsonRecord,
} from "../../core/json.ts";
import { chatByGenerate, goesByGenerate } from "./gemini-generate.ts";
import { openaiWire } from "./openai-wire.ts";
import {
  cuts,
  eventsOf,
  messageOf,
  testDeployment,
  translated,
} from "./stream-fixture.ts";

const GOOGLE = {
  provider: "gemini" as const,
  providerName: "gemini",
  model: "gemini-3.8-flash",
  apiBase: PROVIDERS["gemini"]?.apiBase ?? "",
};
const DEPLOYMENT = testDeployment(GOOGLE);
const WIRE = chatByGenerate(false);
const HELLO = [{ role: "user", content: "Hello" }];
const TOOL = {
  type: "function",
  function: { name: "weather", parameters: { type: "object" } },
};
const SAFETY = [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "OFF" }];

const bodyWith = (fields: object) => ({
  model: "alias",
  messages: HELLO,
  ...fields,
});
const requestOf = (fields: object, deployment = DEPLOYMENT) =>
  WIRE.request("chat", bodyWith(fields), deployment, false);

test.each([
  [{}, false],
  [{ tools: [TOOL] }, false],
  [{ web_search_options: {} }, true],
  [{ tools: [{ googleSearch: {} }] }, true],
  // Google rejects them together.
  [{ tools: [TOOL, { googleSearch: {} }] }, false],
  [{ tools: [TOOL], web_search_options: {} }, false],
  [{ tools: [{ google_search: {} }] }, true],
  [{ tools: [{ url_context: {} }] }, true],
  [{ tools: [{ type: "web_search_preview" }] }, true],
  [{ safety_settings: SAFETY }, true],
  [{ modalities: ["text"] }, false],
  [{ modalities: ["image", "text"] }, true],
  [{ messages: [{ role: "user", content: [{ type: "file" }] }] }, true],
  [{ extra_body: { google: { safety_settings: SAFETY } } }, true],
])("a chat with %j reaches Gemini by its own API: %s", (fields, is) => {
  expect(goesByGenerate(bodyWith(fields), DEPLOYMENT)).toBe(is);
  // The address of another server says nothing of Google's.
  const elsewhere = { ...GOOGLE, apiBase: "https://relay.example/v1" };
  const relay = testDeployment(elsewhere);
  expect(goesByGenerate(bodyWith(fields), relay)).toBe(false);
});

test("safety settings of the configuration are sent, unless the call has its own", () => {
  const safety_settings = SAFETY;
  const configured = testDeployment({
    ...GOOGLE,
    defaults: { safety_settings },
  });
  expect(goesByGenerate(bodyWith({}), configured)).toBe(true);
  expect(requestOf({}, configured)["safetySettings"]).toEqual(SAFETY);
  const own = [{ category: "c", threshold: "BLOCK_NONE" }];
  expect(
    requestOf({ safety_settings: own }, configured)["safetySettings"],
  ).toEqual(own);
});

test("where it goes, and with which key", () => {
  const { path } = chatByGenerate(true);
  const base = "https://generativelanguage.googleapis.com/v1beta/models";
  expect(WIRE.path("chat", DEPLOYMENT)).toBe(
    `${base}/gemini-3.8-flash:generateContent`,
  );
  expect(path("chat", DEPLOYMENT)).toBe(
    `${base}/gemini-3.8-flash:streamGenerateContent?alt=sse`,
  );
  expect(WIRE.headers(DEPLOYMENT, {})).toEqual({
    "x-goog-api-key": "provider-key",
  });
});

test("a whole conversation with its tools, files and parameters", () => {
  const schema = { type: "object", properties: {} };
  const call = (id: string, more: object = {}) => ({
    id,
    type: "function",
    function: { name: "weather", arguments: '{"city":"Kiel"}' },
    ...more,
  });
  const signed = { google: { thought_signature: "c2ln" } };
  const sent = requestOf({
    messages: [
      { role: "system", content: "Be kind." },
      {
        role: "user",
        content: [
          { type: "text", text: "Look" },
          {
            type: "image_url",
            image_url: { url: "data:image/png;base64,QQ==" },
          },
          { type: "image_url", image_url: { url: "https://x.example/a.webp" } },
          {
            type: "file",
            file: { file_data: "data:application/pdf;base64,Qg==" },
          },
          { type: "input_audio", input_audio: { data: "Qw==", format: "mp3" } },
        ],
      },
      {
        role: "assistant",
        content: "I ask.",
        tool_calls: [call("a", { extra_content: signed }), call("b")],
      },
      { role: "tool", tool_call_id: "a", content: '{"sun":true}' },
      { role: "tool", tool_call_id: "b", content: "rain" },
      { role: "user", content: "And?" },
    ],
    tools: [TOOL],
    tool_choice: { type: "function", function: { name: "weather" } },
    max_tokens: 9,
    temperature: 0.5,
    top_k: 4,
    stop: "x",
    response_format: { type: "json_schema", json_schema: { schema } },
    reasoning_effort: "high",
  });
  const functionCall = { name: "weather", args: { city: "Kiel" } };
  const response = (of: object) => ({
    functionResponse: { name: "weather", response: of },
  });
  expect(sent).toEqual({
    systemInstruction: { parts: [{ text: "Be kind." }] },
    contents: [
      {
        role: "user",
        parts: [
          { text: "Look" },
          { inlineData: { mimeType: "image/png", data: "QQ==" } },
          {
            fileData: {
              mimeType: "image/webp",
              fileUri: "https://x.example/a.webp",
            },
          },
          { inlineData: { mimeType: "application/pdf", data: "Qg==" } },
          { inlineData: { mimeType: "audio/mp3", data: "Qw==" } },
        ],
      },
      {
        role: "model",
        parts: [
          { text: "I ask." },
          { functionCall, thoughtSignature: "c2ln" },
          { functionCall },
        ],
      },
      {
        role: "user",
        parts: [
          response({ sun: true }),
          response({ output: "rain" }),
          { text: "And?" },
        ],
      },
    ],
    tools: [
      {
        functionDeclarations: [
          { name: "weather", parametersJsonSchema: { type: "object" } },
        ],
      },
    ],
    toolConfig: {
      functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["weather"] },
    },
    generationConfig: {
      maxOutputTokens: 9,
      temperature: 0.5,
      topK: 4,
      stopSequences: ["x"],
      responseMimeType: "application/json",
      responseJsonSchema: schema,
      thinkingConfig: { include_thoughts: true, thinking_level: "high" },
    },
  });
});

test("integers of 64 bits in arguments and results of tools keep their digits", () => {
  const digits = '{"id":1234567890123456789}';
  const call = { name: "find", arguments: digits };
  const sent = requestOf({
    messages: [
      ...HELLO,
      {
        role: "assistant",
        tool_calls: [{ id: "one", type: "function", function: call }],
      },
      { role: "tool", tool_call_id: "one", content: digits },
    ],
  });
  expect(JSON.stringify(sent)).toContain(`"args":${digits}`);
  expect(JSON.stringify(sent)).toContain(`"response":${digits}`);
});

test.each([
  ["gemini-3-pro", "minimal", { thinkingLevel: "low" }],
  ["gemini-3.8-flash", "minimal", { thinkingLevel: "minimal" }],
  ["gemini-2.5-flash", "none", { thinkingBudget: 0 }],
  ["gemini-2.5-flash", "minimal", { thinkingBudget: 1_024 }],
])("%s with an effort of %s", (model, reasoning_effort, thinkingConfig) => {
  const to = testDeployment({ ...GOOGLE, model });
  const search = { reasoning_effort, web_search_options: {} };
  expect(requestOf(search, to)["generationConfig"]).toEqual({ thinkingConfig });
});

test("what Gemini does not have is named, and its tools at other providers", () => {
  const lacks = (fields: object) =>
    WIRE.unsupported("chat", bodyWith(fields), DEPLOYMENT);
  const tools = [{ googleSearch: {} }, { urlContext: {} }];
  expect(
    lacks({ tools, web_search_options: {}, top_k: 1, logit_bias: { 1: 2 } }),
  ).toEqual(["logit_bias"]);
  expect(lacks({ tools: [TOOL, ...tools], web_search_options: {} })).toEqual([
    "web_search_options",
    "tools[1] (googleSearch)",
    "tools[2] (urlContext)",
  ]);
  const other = testDeployment();
  const asked = bodyWith({ tools: [TOOL, ...tools], tool_choice: "auto" });
  expect(openaiWire.unsupported("chat", asked, other)).toEqual([
    "tools[1] (googleSearch)",
    "tools[2] (urlContext)",
  ]);
  expect(openaiWire.request("chat", asked, other, false)["tools"]).toEqual([
    TOOL,
  ]);
});

describe("answers", () => {
  const SOURCE = { web: { uri: "https://a.example", title: "a.example" } };
  const TEXTS = ["Grüße: ", "Sonne"];
  const GROUNDING = {
    webSearchQueries: ["weather", "weather Kiel"],
    groundingChunks: [SOURCE],
    groundingSupports: [
      // "ü" and "ß" have two bytes each.
      {
        segment: { startIndex: 9, endIndex: 14 },
        groundingChunkIndices: [0],
      },
    ],
  };
  const CALL = {
    functionCall: { name: "weather", args: { city: "Köln" }, id: "call_1" },
    thoughtSignature: "c2ln",
  };
  const USAGE = {
    promptTokenCount: 10,
    toolUsePromptTokenCount: 5,
    candidatesTokenCount: 7,
    thoughtsTokenCount: 3,
    cachedContentTokenCount: 2,
    totalTokenCount: 25,
  };
  const head = { modelVersion: "gemini-3.8-flash", responseId: "r1" };
  const event = (parts: readonly object[], more: object = {}) => ({
    ...head,
    candidates: [{ content: { role: "model", parts }, index: 0, ...more }],
    usageMetadata: { promptTokenCount: 10 },
  });
  const WHOLE = {
    ...event(
      [{ text: "hm", thought: true }, ...TEXTS.map((text) => ({ text })), CALL],
      { finishReason: "STOP", groundingMetadata: GROUNDING },
    ),
    usageMetadata: USAGE,
  };
  const EVENTS = [
    event([{ text: "hm", thought: true }]),
    ...TEXTS.map((text) => event([{ text }])),
    { ...event([CALL], { groundingMetadata: GROUNDING }) },
    {
      ...event([{ text: "" }], {
        finishReason: "STOP",
        groundingMetadata: GROUNDING,
      }),
      usageMetadata: USAGE,
    },
  ];
  const sse = (events: readonly object[]) =>
    Buffer.from(
      events.map((one) => `data: ${JSON.stringify(one)}\r\n\r\n`).join(""),
    );
  const answerOf = (answer: object) => {
    const { body, facts } = WIRE.answer(
      "chat",
      Buffer.from(JSON.stringify(answer)),
    );
    const chat = parseRecord(body.toString()) ?? {};
    const [choice] = recordsOf(chat["choices"]);
    return { chat, choice: recordOf(choice), facts };
  };

  test("text, thoughts, calls, sources and usage", () => {
    const { chat, choice, facts } = answerOf(WHOLE);
    expect(chat).toMatchObject({ id: "r1", model: "gemini-3.8-flash" });
    expect(choice).toEqual({
      index: 0,
      message: {
        role: "assistant",
        content: "Grüße: Sonne",
        reasoning_content: "hm",
        annotations: [
          {
            type: "url_citation",
            url_citation: {
              start_index: 7,
              end_index: 12,
              title: "a.example",
              url: "https://a.example",
            },
          },
        ],
        tool_calls: [
          {
            id: "call_1",
            type: "function",
            function: { name: "weather", arguments: '{"city":"Köln"}' },
            extra_content: { google: { thought_signature: "c2ln" } },
          },
        ],
      },
      finish_reason: "tool_calls",
    });
    expect(facts.usage).toMatchObject({
      inputTokens: 15,
      outputTokens: 10,
      reasoningTokens: 3,
      cachedInputTokens: 2,
      webSearches: 2,
    });
  });

  test("a stream, cut anywhere, equals the whole answer", () => {
    const { chat, choice, facts } = answerOf(WHOLE);
    fc.assert(
      fc.property(cuts, (places) => {
        const translator = chatByGenerate(true).stream("chat");
        const pieces = translated(translator, eventsOf(sse(EVENTS), places));
        expect(pieces.map(({ kind }) => kind).slice(-2)).toEqual([
          "usage_only",
          "done",
        ]);
        const { message, usage, finishReason } = messageOf(pieces);
        expect({ role: "assistant", ...message }).toEqual(choice["message"]);
        expect([usage, finishReason]).toEqual([chat["usage"], "tool_calls"]);
        expect(translator.facts().usage).toEqual(facts.usage);
      }),
      { numRuns: 30 },
    );
  });

  test("images are asked for, in the answer and its usage, and sent back", () => {
    const config = { responseModalities: ["IMAGE", "TEXT"] };
    const modalities = ["image", "text"];
    expect(requestOf({ modalities })["generationConfig"]).toEqual(config);
    const part = { inlineData: { mimeType: "image/png", data: "QQ==" } };
    const { choice, facts } = answerOf({
      ...event([{ text: "Here:" }, part], { finishReason: "STOP" }),
      usageMetadata: {
        ...USAGE,
        candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 6 }],
      },
    });
    const message = recordOf(choice["message"]);
    expect(message["images"]).toEqual([
      {
        type: "image_url",
        image_url: { url: "data:image/png;base64,QQ==" },
        index: 0,
      },
    ]);
    expect(facts.usage).toMatchObject({ imageOutputTokens: 6 });
    const { contents } = requestOf({ messages: [message], modalities });
    expect(contents).toEqual([
      { role: "model", parts: [{ text: "Here:" }, part] },
    ]);
  });

  test.each([
    [{ ...head, promptFeedback: { blockReason: "SAFETY" } }, "content_filter"],
    [event([{ text: "a" }], { finishReason: "MAX_TOKENS" }), "length"],
    [event([], { finishReason: "RECITATION" }), "content_filter"],
  ])("%j ends with %s", (answer: JsonRecord, reason) => {
    expect(answerOf(answer).choice["finish_reason"]).toBe(reason);
    const pieces = translated(
      chatByGenerate(true).stream("chat"),
      eventsOf(sse([answer])),
    );
    expect(messageOf(pieces).finishReason).toBe(reason);
  });

  test("a stream that is cut or fails ends with an error, with the usage so far", () => {
    const cut = chatByGenerate(true).stream("chat");
    const pieces = translated(cut, eventsOf(sse(EVENTS.slice(0, 2))));
    expect(pieces.map(({ kind }) => kind).slice(-2)).toEqual(["error", "done"]);
    expect(cut.facts()).toMatchObject({
      text: "hmGrüße: ",
      usage: { inputTokens: 10 },
    });
    const error = { code: 503, message: "Busy.", status: "UNAVAILABLE" };
    const failed = translated(
      chatByGenerate(true).stream("chat"),
      eventsOf(sse([EVENTS[0] ?? {}, { error }])),
    );
    expect(failed.map(({ kind }) => kind)).toEqual(["pass", "error", "done"]);
    expect(failed[1]?.data).toContain("Busy.");
  });
});
