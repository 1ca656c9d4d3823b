import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listen } from "../servers/ports.ts";
import { MOCK, mockPrompt } from "./formats/mock-model.ts";
import { CHAT_FORMATS } from "./provider-formats.ts";
import { PIXEL, startClientTestbed, type ClientTestbed } from "./testbed.ts";

let testbed: ClientTestbed;
let key: string;

beforeAll(async () => {
  testbed = await startClientTestbed();
  key = await testbed.createKey();
});
afterAll(() => testbed.stop());

interface Part {
  readonly text?: string;
  readonly functionCall?: {
    readonly name: string;
    readonly id?: string;
    readonly args: { readonly city: string };
  };
}

interface Answer {
  readonly candidates?: readonly {
    readonly content: {
      readonly role: string;
      readonly parts: readonly Part[];
    };
    readonly finishReason?: string;
  }[];
  readonly usageMetadata?: { readonly totalTokenCount: number };
}

interface Fields {
  readonly contents?: readonly unknown[];
  readonly [name: string]: unknown;
}

function user(...parts: readonly object[]) {
  return { role: "user", parts };
}

function ask(
  called: string,
  fields: Fields = {},
  {
    signal,
    path = "/v1beta/models/",
  }: { signal?: AbortSignal; path?: string } = {},
): Promise<Response> {
  return fetch(`${testbed.url}${path}${called}`, {
    method: "POST",
    headers: { "x-goog-api-key": key, "content-type": "application/json" },
    body: JSON.stringify({ contents: [user({ text: "Hello" })], ...fields }),
    ...(signal === undefined ? {} : { signal }),
  });
}

async function answerOf(model: string, fields: Fields = {}): Promise<Answer> {
  const answer = await ask(`${model}:generateContent`, fields);
  expect(answer.headers.get("x-hearth-model-group")).toBe(model);
  return (await answer.json()) as Answer;
}

async function chunksOf(model: string, fields: Fields = {}) {
  const called = `${model}:streamGenerateContent?alt=sse`;
  const answer = await ask(called, fields);
  expect(answer.headers.get("content-type")).toMatch(/^text\/event-stream/);
  const text = await answer.text();
  return text
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => JSON.parse(event.replace(/^data: /, "")) as Answer);
}

function partsOf(...answers: readonly Answer[]): readonly Part[] {
  return answers.flatMap(({ candidates = [] }) =>
    candidates.flatMap(({ content }) => content.parts),
  );
}

function textOf(...answers: readonly Answer[]): string {
  return partsOf(...answers)
    .map(({ text = "" }) => text)
    .join("");
}

const SCHEMA = {
  type: "OBJECT",
  properties: { city: { type: "STRING" } },
  required: ["city"],
};
const TOOLS = [
  {
    functionDeclarations: [
      { name: "get_weather", description: "Weather", parameters: SCHEMA },
    ],
  },
];
/** What Gemini's own command sends with every call. */
const SAMPLING = { temperature: 1, topP: 0.95, topK: 64 };

test.each(["/v1beta/models", "/v1/models"])(
  "%s, and one of them, have the fields of Gemini's",
  async (path) => {
    const asked = async (url: string) => {
      const answer = await fetch(testbed.url + url, {
        headers: { "x-goog-api-key": key },
      });
      return (await answer.json()) as { readonly models?: readonly object[] };
    };
    const chat = {
      name: "models/claude-sonnet",
      displayName: "claude-sonnet",
      inputTokenLimit: 200_000,
      outputTokenLimit: 64_000,
      supportedGenerationMethods: ["generateContent", "countTokens"],
    };
    expect(await asked(`${path}/claude-sonnet`)).toMatchObject(chat);
    const { models } = await asked(path);
    expect(models).toContainEqual(expect.objectContaining(chat));
    expect(models).toContainEqual(
      expect.objectContaining({
        name: "models/embed-local",
        supportedGenerationMethods: [],
      }),
    );
  },
);

describe.each(CHAT_FORMATS)("contents through the format of %s", (format) => {
  const model = `${format}-chat`;

  test("plain and streamed answers, with their usage", async () => {
    const whole = await answerOf(model, { generationConfig: SAMPLING });
    const chunks = await chunksOf(model, { generationConfig: SAMPLING });
    expect(chunks.length).toBeGreaterThan(1);
    expect(textOf(whole)).toBe(MOCK.text);
    expect(textOf(...chunks)).toBe(MOCK.text);
    for (const answer of [whole, chunks.at(-1)]) {
      expect(answer).toMatchObject({
        candidates: [{ content: { role: "model" }, finishReason: "STOP" }],
        usageMetadata: {
          promptTokenCount: MOCK.inputTokens,
          totalTokenCount: MOCK.inputTokens + MOCK.outputTokens,
        },
      });
    }
  });

  test("parallel tools are called, whole or streamed, and their results sent back", async () => {
    const whole = await answerOf(model, { tools: TOOLS });
    const streamed = await chunksOf(model, { tools: TOOLS });
    for (const parts of [partsOf(whole), partsOf(...streamed)]) {
      const calls = parts.flatMap(({ functionCall }) => functionCall ?? []);
      expect(calls.map(({ args }) => args.city)).toEqual(MOCK.cities);
      const results = calls.map(({ name, id, args }) => ({
        functionResponse: { name, id, response: { output: `in ${args.city}` } },
      }));
      const contents = [
        user({ text: "Hello" }),
        { role: "model", parts },
        user(...results),
      ];
      expect(textOf(await answerOf(model, { contents, tools: TOOLS }))).toBe(
        "Weather: in Zürich, in Genève",
      );
    }
  });

  test("structured answers and images", async () => {
    const generationConfig = {
      responseMimeType: "application/json",
      responseSchema: SCHEMA,
    };
    const structured = await answerOf(model, { generationConfig });
    expect(JSON.parse(textOf(structured))).toEqual(MOCK.json);
    const inlineData = { mimeType: "image/png", data: PIXEL };
    const contents = [user({ text: "What is this?" }, { inlineData })];
    expect(textOf(await answerOf(model, { contents }))).toBe("I see image/png");
  });

  test("an error of the provider has Google's shape, whole or streamed", async () => {
    const text = mockPrompt({ status: 400, message: "Too strange." });
    for (const method of ["generateContent", "streamGenerateContent"]) {
      const contents = [user({ text })];
      const answer = await ask(`${model}:${method}`, { contents });
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({
        error: {
          code: 400,
          status: "INVALID_ARGUMENT",
          message: expect.stringContaining("Too strange.") as string,
        },
      });
    }
  });
});

test("a stream that breaks off ends with an error as Google's do: clients take one with `data:` for an empty chunk", async () => {
  const contents = [user({ text: mockPrompt({ cutAfter: 3 }) })];
  const asked = "openai-chat:streamGenerateContent?alt=sse";
  const text = await (await ask(asked, { contents })).text();
  const events = text.split("\n\n");
  const last = events.pop() ?? "";
  expect(events.length).toBeGreaterThan(0);
  expect(events.filter((event) => !event.startsWith("data: "))).toEqual([]);
  expect(JSON.parse(last)).toMatchObject({ error: { code: 502 } });
});

test.each([
  ["/v1beta/models/nope:generateContent", 400, /model=nope/],
  ["/v1beta/models/openai-chat:embedContent", 404, /embedContent/],
  ["/v1beta/models/openai-chat", 404, /MODEL:METHOD/],
  ["/v1beta/cachedContents", 404, /Gemini's own API/],
])("%s is answered with %i", async (path, status, message) => {
  const answer = await ask("", {}, { path });
  expect(answer.status).toBe(status);
  const { error } = (await answer.json()) as { error: { message: string } };
  expect(error.message).toMatch(message);
});

test("Gemini's own thinking is reasoning for clients of chat, whole or streamed", async () => {
  const messages = [{ role: "user", content: "Hello" }];
  const fields = { model: "gemini-chat", messages, reasoning_effort: "low" };
  const path = "/v1/chat/completions";
  const { json } = await testbed.request("POST", path, fields, key);
  expect(json).toMatchObject({
    choices: [
      { message: { content: MOCK.text, reasoning_content: MOCK.thinking } },
    ],
  });
  const body = JSON.stringify({ ...fields, stream: true });
  const headers = { "x-api-key": key, "content-type": "application/json" };
  const streamed = await fetch(testbed.url + path, {
    method: "POST",
    headers,
    body,
  });
  const text = await streamed.text();
  expect(text).toContain(`"reasoning_content":"${MOCK.thinking}"`);
  expect(text).not.toContain("thought>");
});

test("thinking is left out for a model that does not reason", async () => {
  await answerOf("without-reasoning", {
    generationConfig: { thinkingConfig: { thinkingBudget: 0 } },
  });
  const { body } = testbed.providers.requests.at(-1) ?? {};
  expect(body).toMatchObject({ model: "played-gpt" });
  expect(body).not.toHaveProperty("reasoning_effort");
});

test.each(CHAT_FORMATS)(
  "thinking is shown without a level or a budget, where Gemini's models answer: %s",
  async (format) => {
    const answer = await answerOf(`${format}-chat`, {
      generationConfig: { thinkingConfig: { includeThoughts: true } },
    });
    const shown = JSON.stringify(answer).includes('"thought":true');
    expect(shown).toBe(format === "gemini");
  },
);

test("a method that is not supported is named, whatever its body is", async () => {
  const fields = { contents: undefined, content: user({ text: "Hello" }) };
  const answer = await ask("openai-chat:embedContent", fields);
  expect(answer.status).toBe(404);
  const { error } = (await answer.json()) as { error: { message: string } };
  expect(error.message).toMatch(/^embedContent is not supported: /);
});

test("a key that may not use the model, and one that is unknown, get Google's errors", async () => {
  const fields = { contents: [user({ text: "Hello" })] };
  const path = "/v1beta/models/openai-chat:generateContent";
  const limited = await testbed.createKey({ models: ["gemini-chat"] });
  for (const [each, status, name] of [
    [limited, 403, "PERMISSION_DENIED"],
    ["sk-unknown", 401, "UNAUTHENTICATED"],
  ] as const) {
    const answer = await testbed.request("POST", path, fields, each);
    expect(answer.status).toBe(status);
    expect(answer.json).toMatchObject({ error: { status: name } });
  }
});

test("what chat does not have is rejected, and the refusal recorded once", async () => {
  const searching = await testbed.createKey();
  for (const tool of [{ codeExecution: {} }, { functionDeclarations: [{}] }]) {
    const fields = { contents: [user({ text: "Hello" })], tools: [tool] };
    const path = "/v1beta/models/nope:generateContent";
    const answer = await testbed.request("POST", path, fields, searching);
    expect(answer.status).toBe(400);
  }
  await testbed.running.gateway.refusals.flush();
  const { json } = await testbed.request(
    "GET",
    "/refusals",
    undefined,
    searching,
  );
  const refusals = json["refusals"] as unknown as { message: string }[];
  const messages = refusals.map(({ message }) => message).toSorted();
  expect(messages).toEqual([
    expect.stringContaining("model=nope"),
    expect.stringContaining("tools[0].codeExecution"),
  ]);
});

test("tokens are counted without a call, and each call has one row", async () => {
  const counting = await testbed.createKey();
  const send = (method: string) =>
    testbed.request(
      "POST",
      `/v1beta/models/openai-chat:${method}`,
      { contents: [user({ text: "Hello, how are you today?" })] },
      counting,
    );
  expect((await send("countTokens")).json).toEqual({
    totalTokens: expect.any(Number) as number,
  });
  await send("generateContent");
  await send("streamGenerateContent");
  const path = `/spend/logs?api_key=${counting}`;
  await expect
    .poll(async () => {
      const { json } = await testbed.request("GET", path);
      return json as unknown;
    })
    .toEqual([
      expect.objectContaining({ spend: 0.000044, status: "success" }),
      expect.objectContaining({ spend: 0.000044, status: "success" }),
    ]);
});

test.each(["generateContent", "streamGenerateContent"])(
  "a client that leaves ends its call: %s",
  async (method) => {
    const leaving = new AbortController();
    const text = mockPrompt({ delayMs: 60_000 });
    const before = testbed.providers.requests.length;
    const answer = ask(
      `openai-chat:${method}`,
      { contents: [user({ text })] },
      { signal: leaving.signal },
    );
    await expect
      .poll(() => testbed.providers.requests.length)
      .toBeGreaterThan(before);
    leaving.abort();
    await expect(answer).rejects.toThrow();
    const { activeCalls } = testbed.running.gateway;
    await expect.poll(() => activeCalls.count()).toBe(0);
  },
);

test("a client that leaves in the middle of a stream stops the provider", async () => {
  const choices = [{ index: 0, delta: { content: "word " } }];
  const chunk = `data: ${JSON.stringify({ id: "c", choices })}\n\n`;
  const stopped = Promise.withResolvers<void>();
  const provider = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const timer = setInterval(() => response.write(chunk), 20);
    response.once("close", () => {
      clearInterval(timer);
      stopped.resolve();
    });
  });
  const api_base = `http://127.0.0.1:${await listen(provider)}/v1`;
  const litellm_params = { model: "openai/endless", api_base, api_key: "x" };
  const created = { model_name: "endless", litellm_params };
  await testbed.request("POST", "/model/new", created);
  const leaving = new AbortController();
  const { signal } = leaving;
  const answer = await ask("endless:streamGenerateContent", {}, { signal });
  expect(answer.status).toBe(200);
  await answer.body?.getReader().read();
  leaving.abort();
  await stopped.promise;
  const { activeCalls } = testbed.running.gateway;
  await expect.poll(() => activeCalls.count()).toBe(0);
  provider.closeAllConnections();
  provider.close();
});
