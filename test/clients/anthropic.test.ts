import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MOCK, mockPrompt } from "./formats/mock-model.ts";
import { CHAT_FORMATS } from "./provider-formats.ts";
import {
  caught,
  collected,
  countingFetch,
  PIXEL,
  startClientTestbed,
  type ClientTestbed,
} from "./testbed.ts";

let testbed: ClientTestbed;
let key: string;

beforeAll(async () => {
  testbed = await startClientTestbed();
  key = await testbed.createKey();
});
afterAll(() => testbed.stop());

function clientOf(
  options: ConstructorParameters<typeof Anthropic>[0] = {},
): Anthropic {
  return new Anthropic({
    apiKey: key,
    baseURL: testbed.url,
    maxRetries: 0,
    ...options,
  });
}

const WEATHER: Anthropic.Tool = {
  name: "get_weather",
  description: "The weather in a city",
  input_schema: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
  },
};

function user(content: string) {
  return { role: "user" as const, content };
}

function textIn({ content }: Anthropic.Message): string {
  return content
    .map((block) => (block.type === "text" ? block.text : ""))
    .join("");
}

describe.each(CHAT_FORMATS)("messages through the format of %s", (format) => {
  const model = `${format}-chat`;
  const ask = { model, max_tokens: 100, messages: [user("Hello")] };

  test("plain and streamed answers, with their usage", async () => {
    const whole = await clientOf().messages.create({
      ...ask,
      system: [{ type: "text", text: "Be kind." }],
      metadata: { user_id: "anna" },
    });
    const stream = clientOf().messages.stream(ask);
    let input = 0;
    stream.on("streamEvent", (event) => {
      if (event.type === "message_start") {
        const { usage } = event.message;
        input = usage.input_tokens + (usage.cache_read_input_tokens ?? 0);
      }
    });
    const streamed = await stream.finalMessage();
    expect(input).toBeGreaterThan(0);
    for (const message of [whole, streamed]) {
      expect(message).toMatchObject({ type: "message", role: "assistant" });
      expect(textIn(message)).toBe(MOCK.text);
      expect(message.stop_reason).toBe("end_turn");
      const { usage } = message;
      expect(usage.input_tokens + (usage.cache_read_input_tokens ?? 0)).toBe(
        MOCK.inputTokens,
      );
      expect(usage.output_tokens).toBe(MOCK.outputTokens);
      // Gemini's answers here report no cached tokens.
      if (format !== "gemini") {
        expect(usage.cache_read_input_tokens).toBe(MOCK.cachedTokens);
      }
    }
  });

  test("parallel tools, plain and streamed, and their results", async () => {
    const client = clientOf();
    const request = { ...ask, tools: [WEATHER] };
    const whole = await client.messages.create(request);
    const streamed = await client.messages.stream(request).finalMessage();
    for (const { content, stop_reason } of [whole, streamed]) {
      expect(stop_reason).toBe("tool_use");
      const uses = content.filter((block) => block.type === "tool_use");
      expect(uses.map(({ name, input }) => [name, input])).toEqual(
        MOCK.cities.map((city) => ["get_weather", { city }]),
      );
    }
    const uses = streamed.content.filter((block) => block.type === "tool_use");
    const answer = await client.messages.create({
      ...request,
      messages: [
        user("Weather in both cities?"),
        { role: "assistant", content: streamed.content },
        {
          role: "user",
          content: uses.map(({ id }, index) => ({
            type: "tool_result" as const,
            tool_use_id: id,
            content: `${20 + index} °C`,
          })),
        },
      ],
    });
    expect(textIn(answer)).toBe("Weather: 20 °C, 21 °C");
  });

  test("images, inline and by URL", async () => {
    const answer = await clientOf().messages.create({
      ...ask,
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            {
              type: "image",
              source: { type: "base64", media_type: "image/png", data: PIXEL },
            },
            {
              type: "image",
              source: { type: "url", url: "https://example.com/a.png" },
            },
          ],
        },
      ],
    });
    expect(textIn(answer)).toBe("I see image/png and url");
  });

  test("structured output", async () => {
    const answer = await clientOf().messages.create({
      ...ask,
      output_config: {
        format: {
          type: "json_schema",
          schema: {
            type: "object",
            properties: { city: { type: "string" } },
            additionalProperties: false,
          },
        },
      },
    });
    expect(JSON.parse(textIn(answer))).toEqual(MOCK.json);
  });

  test("tokens are counted, by estimate where the provider does not count them", async () => {
    const before = testbed.providers.requests.length;
    const counted = await clientOf().messages.countTokens({
      model,
      messages: [user("Hello, how are you today?")],
    });
    expect(counted.input_tokens).toBeGreaterThan(5);
    expect(counted.input_tokens).toBeLessThan(60);
    // The mock of Anthropic has no such route.
    const asked = format === "anthropic" ? 1 : 0;
    expect(testbed.providers.requests.length).toBe(before + asked);
    expect(counted).toMatchObject({ estimated: true });
  });

  test.each([
    [400, Anthropic.BadRequestError],
    [401, Anthropic.AuthenticationError],
    [403, Anthropic.PermissionDeniedError],
    [404, Anthropic.NotFoundError],
    [429, Anthropic.RateLimitError],
    [529, Anthropic.InternalServerError],
  ])(
    "the provider's %i has its class and hides its secret",
    async (status, kind) => {
      for (const stream of [false, true]) {
        const error = await caught(
          clientOf().messages.create({
            ...ask,
            messages: [user(mockPrompt({ status }))],
            stream,
          }),
        );
        expect(error).toBeInstanceOf(kind);
        expect((error as Error).message).toContain("refused with key [secret]");
        expect((error as Error).message).not.toContain("provider-secret");
        expect(error).toMatchObject({ error: { type: "error" } });
      }
    },
  );

  test("a retry waits for the provider's retry-after", async () => {
    const { fetch, count } = countingFetch();
    const prompt = mockPrompt({ status: 429, failures: 1, retryAfter: 1 });
    const answer = await clientOf({ fetch, maxRetries: 2 }).messages.create({
      ...ask,
      messages: [user(prompt)],
    });
    expect(textIn(answer)).toBe(MOCK.text);
    expect(count()).toBe(2);
  });

  test("an interrupted stream ends with an error", async () => {
    const stream = clientOf().messages.stream({
      ...ask,
      messages: [user(mockPrompt({ cutAfter: 2 }))],
    });
    expect(await caught(stream.finalMessage())).toBeInstanceOf(
      Anthropic.APIError,
    );
  });
});

test("the list of models, and one of them, have the fields of Anthropic's", async () => {
  const models = await collected(clientOf().models.list());
  const found = models.find(({ id }) => id === "anthropic-chat");
  expect(found).toMatchObject({
    type: "model",
    display_name: "anthropic-chat",
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as unknown,
  });
  expect(await clientOf().models.retrieve("anthropic-chat")).toEqual(found);
  const page = await clientOf().models.list();
  expect([page.has_more, page.first_id, page.last_id]).toEqual([
    false,
    models[0]?.id,
    models.at(-1)?.id,
  ]);
});

test("thinking blocks are passed through unchanged and can be sent back", async () => {
  const request = {
    model: "anthropic-chat",
    max_tokens: 4_000,
    thinking: { type: "enabled" as const, budget_tokens: 2_000 },
    messages: [user("Hello")],
  };
  const client = clientOf({
    defaultHeaders: { "anthropic-beta": "interleaved-thinking-2025-05-14" },
  });
  const whole = await client.messages.create(request);
  const streamed = await client.messages.stream(request).finalMessage();
  for (const { content } of [whole, streamed]) {
    expect(content[0]).toMatchObject({
      type: "thinking",
      thinking: MOCK.thinking,
      signature: expect.stringMatching(/^EqQB/) as string,
    });
  }
  const again = await client.messages.create({
    ...request,
    messages: [
      ...request.messages,
      { role: "assistant", content: whole.content },
      user("And now?"),
    ],
  });
  expect(textIn(again)).toBe(MOCK.text);
  const { headers } = testbed.providers.requests.at(-1) ?? {};
  expect(headers?.["anthropic-beta"]).toBe("interleaved-thinking-2025-05-14");
});

test("the key is accepted in both headers", async () => {
  const bearer = new Anthropic({
    apiKey: null,
    authToken: key,
    baseURL: testbed.url,
  });
  const answer = await bearer.messages.create({
    model: "anthropic-chat",
    max_tokens: 10,
    messages: [user("Hello")],
  });
  expect(textIn(answer)).toBe(MOCK.text);
  const { headers } = testbed.providers.requests.at(-1) ?? {};
  expect(JSON.stringify(headers)).not.toContain(key);
});

describe("gateway errors in Anthropic's shape", () => {
  const ask = (client: Anthropic, fields: object = {}) =>
    caught(
      client.messages.create({
        model: "openai-chat",
        max_tokens: 10,
        messages: [user("Hello")],
        ...fields,
      }),
    );

  test.each([
    [
      "an unknown key",
      { apiKey: "sk-unknown-key" },
      {},
      401,
      "authentication_error",
    ],
    [
      "an unknown model",
      {},
      { model: "no-such-model" },
      400,
      "invalid_request_error",
    ],
    [
      "no max_tokens",
      {},
      { max_tokens: undefined },
      400,
      "invalid_request_error",
    ],
    ["a pending alias", {}, { model: "pending" }, 503, "overloaded_error"],
  ])("%s", async (_what, options, fields, status, type) => {
    const error = await ask(clientOf(options), fields);
    expect(error).toBeInstanceOf(Anthropic.APIError);
    expect(error).toMatchObject({
      status,
      error: { type: "error", error: { type } },
    });
  });

  test("an exceeded budget is not retried", async () => {
    const apiKey = await testbed.createKey({ max_budget: 0 });
    const { fetch, count } = countingFetch();
    const error = await ask(clientOf({ apiKey, fetch, maxRetries: 3 }));
    expect(error).toBeInstanceOf(Anthropic.BadRequestError);
    expect((error as Error).message).toContain("Budget has been exceeded!");
    expect(count()).toBe(1);
  });

  test("a rate limit has retry-after", async () => {
    const apiKey = await testbed.createKey({ rpm_limit: 1 });
    const client = clientOf({ apiKey });
    await client.messages.create({
      model: "openai-chat",
      max_tokens: 10,
      messages: [user("Hello")],
    });
    const error = await ask(client);
    expect(error).toBeInstanceOf(Anthropic.RateLimitError);
    const { headers } = error as InstanceType<typeof Anthropic.RateLimitError>;
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  });
});
