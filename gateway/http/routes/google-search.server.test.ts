import { createServer, type Server } from "node:http";
import { json } from "node:stream/consumers";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  modelYaml,
  startTestbed,
  type Testbed,
} from "../../../test/servers/gateway.ts";
import { listen } from "../../../test/servers/ports.ts";
import { recordOf, type JsonRecord } from "../../../core/json.ts";
import { query } from "../../database/pool.ts";

/** Google, whose chat for OpenAI's clients has no search. */
let google: Server;
let testbed: Testbed;
let key: string;
const received: { path: string; key: unknown; body: JsonRecord }[] = [];

const ANSWER = {
  candidates: [
    {
      index: 0,
      content: { role: "model", parts: [{ text: "Sonne über Kiel." }] },
      finishReason: "STOP",
      groundingMetadata: {
        webSearchQueries: ["weather in Kiel"],
        groundingChunks: [
          { web: { uri: "https://weather.example", title: "weather.example" } },
        ],
        groundingSupports: [
          {
            segment: { startIndex: 6, endIndex: 17 },
            groundingChunkIndices: [0],
          },
        ],
      },
    },
  ],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 4 },
  modelVersion: "gemini-3.8-flash",
  responseId: "r1",
};
const GROUNDING = {
  groundingChunks: [
    { web: { uri: "https://weather.example", title: "weather.example" } },
  ],
  groundingSupports: [
    {
      segment: { startIndex: 6, endIndex: 17, text: "über Kiel." },
      groundingChunkIndices: [0],
    },
  ],
};

beforeAll(async () => {
  google = createServer((request, response) => {
    void json(request).then((body) => {
      const { url: path = "", headers } = request;
      received.push({
        path,
        key: headers["x-goog-api-key"],
        body: recordOf(body),
      });
      const isStream = path.includes(":streamGenerateContent?alt=sse");
      response.setHeader(
        "content-type",
        isStream ? "text/event-stream" : "application/json",
      );
      const text = JSON.stringify(ANSWER);
      response.end(isStream ? `data: ${text}\r\n\r\n` : text);
    });
  });
  const port = await listen(google);
  testbed = await startTestbed((url) =>
    modelYaml(
      url,
      `
  - model_name: flash
    litellm_params:
      model: gemini/gemini-3.8-flash
      api_base: http://127.0.0.1:${port}/v1beta/openai
      api_key: google-key
      input_cost_per_token: 0
      output_cost_per_token: 0
    model_info:
      search_context_cost_per_query: { search_context_size_medium: 0.014 }
`,
    ),
  );
  key = await testbed.gateway.createKey();
});

afterAll(async () => {
  await testbed?.stop();
  google?.closeAllConnections();
  google?.close();
});

test.each([
  { web_search_options: {} },
  { tools: [{ googleSearch: {} }] },
  { tools: [{ type: "web_search" }] },
])("a chat with %j searches, and each search is billed", async (fields) => {
  const client = new OpenAI({
    apiKey: key,
    baseURL: `${testbed.gateway.url}/v1`,
    maxRetries: 0,
  });
  const { data, response } = await client.chat.completions
    .create({
      model: "flash",
      messages: [
        { role: "user", content: `Weather? ${JSON.stringify(fields)}` },
      ],
      ...(fields as object),
    })
    .withResponse();
  expect(data.choices[0]).toMatchObject({
    message: {
      content: "Sonne über Kiel.",
      annotations: [
        { url_citation: { url: "https://weather.example", start_index: 6 } },
      ],
    },
    finish_reason: "stop",
  });
  expect(received.at(-1)).toMatchObject({
    path: "/v1beta/models/gemini-3.8-flash:generateContent",
    key: "google-key",
    body: { tools: [{ googleSearch: {} }] },
  });
  expect(Number(response.headers.get("x-hearth-cost"))).toBe(0.014);
});

test("a search in Gemini's own API, whole and streamed, with its sources and safety settings", async () => {
  const safetySettings = [{ category: "c", threshold: "OFF" }];
  const ask = async (method: string) => {
    const answer = await fetch(
      `${testbed.gateway.url}/v1beta/models/flash:${method}`,
      {
        method: "POST",
        headers: { "x-goog-api-key": key, "content-type": "application/json" },
        body: JSON.stringify({
          contents: [{ role: "user", parts: [{ text: `Weather? ${method}` }] }],
          tools: [{ googleSearch: {} }, { urlContext: {} }],
          safetySettings,
        }),
      },
    );
    expect(answer.status).toBe(200);
    expect(received.at(-1)?.body).toMatchObject({
      tools: [{ urlContext: {} }, { googleSearch: {} }],
      safetySettings,
    });
    return answer.text();
  };
  const whole = JSON.parse(await ask("generateContent")) as JsonRecord;
  expect(whole["candidates"]).toMatchObject([
    {
      content: { parts: [{ text: "Sonne über Kiel." }] },
      groundingMetadata: GROUNDING,
    },
  ]);
  const events = (await ask("streamGenerateContent?alt=sse"))
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => JSON.parse(event.replace(/^data: /, "")) as JsonRecord);
  expect(events.at(-1)?.["candidates"]).toMatchObject([
    { groundingMetadata: GROUNDING },
  ]);
  await expect
    .poll(() =>
      query(
        testbed.gateway.running.gateway.pool,
        "SELECT FROM spend_log WHERE model_group = 'flash' AND status = 'success'",
      ),
    )
    .toHaveLength(5);
});

test("a search of the Responses API and a document of the Messages API", async () => {
  const ask = async (path: string, fields: object) => {
    const body = { model: "flash", ...fields };
    const answer = await testbed.gateway.request("POST", path, body, key);
    expect(answer.status).toBe(200);
    return answer.json;
  };
  const response = await ask("/v1/responses", {
    input: "Weather by Responses?",
    tools: [{ type: "web_search" }],
  });
  expect(response["output"]).toMatchObject([
    {
      content: [
        {
          text: "Sonne über Kiel.",
          annotations: [{ type: "url_citation", start_index: 6 }],
        },
      ],
    },
  ]);
  const source = {
    type: "base64",
    media_type: "application/pdf",
    data: "JVBERi0=",
  };
  await ask("/v1/messages", {
    max_tokens: 9,
    messages: [{ role: "user", content: [{ type: "document", source }] }],
  });
  expect(received.at(-1)?.body["contents"]).toEqual([
    {
      role: "user",
      parts: [
        { inlineData: { mimeType: "application/pdf", data: "JVBERi0=" } },
      ],
    },
  ]);
});

test("another provider is not sent a tool of Google's", async () => {
  const { status, json: answer } = await testbed.gateway.request(
    "POST",
    "/v1beta/models/mock:generateContent",
    {
      contents: [{ role: "user", parts: [{ text: "Read it" }] }],
      tools: [{ urlContext: {} }],
    },
    key,
  );
  expect([status, recordOf(answer["error"])["message"]]).toEqual([
    400,
    expect.stringContaining("`tools[0] (urlContext)`"),
  ]);
});
