import OpenAI, {
  AuthenticationError,
  AzureOpenAI,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
} from "openai";
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
  options: ConstructorParameters<typeof OpenAI>[0] = {},
): OpenAI {
  return new OpenAI({
    apiKey: key,
    baseURL: `${testbed.url}/v1`,
    maxRetries: 0,
    ...options,
  });
}

const WEATHER = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather in a city",
    parameters: {
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
    },
  },
} as const;
const RESPONSES_WEATHER = {
  type: "function",
  strict: false,
  ...WEATHER.function,
} as const;

function user(content: string) {
  return [{ role: "user" as const, content }];
}

describe.each(CHAT_FORMATS)("chat through the format of %s", (format) => {
  const model = `${format}-chat`;

  test("a plain answer, with its usage", async () => {
    const answer = await clientOf().chat.completions.create({
      model,
      messages: [
        { role: "system", content: "Be kind." },
        ...user("Hello"),
        { role: "assistant", content: "Yes?" },
        ...user("Hello again"),
      ],
      max_completion_tokens: 50,
    });
    expect(answer.object).toBe("chat.completion");
    expect(answer.choices[0]?.message.content).toBe(MOCK.text);
    expect(answer.choices[0]?.finish_reason).toBe("stop");
    expect(answer.usage).toMatchObject({
      prompt_tokens: MOCK.inputTokens,
      completion_tokens: MOCK.outputTokens,
      total_tokens: MOCK.inputTokens + MOCK.outputTokens,
    });
  });

  test("a stream reports usage only on request", async () => {
    for (const include_usage of [true, false]) {
      const stream = await clientOf().chat.completions.create({
        model,
        messages: user("Hello"),
        stream: true,
        stream_options: { include_usage },
      });
      let text = "";
      const reported: number[] = [];
      const finishes = new Set<string>();
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? "";
        const finish = chunk.choices[0]?.finish_reason;
        if (finish != null) {
          finishes.add(finish);
        }
        if (chunk.usage != null) {
          reported.push(chunk.usage.completion_tokens);
        }
      }
      expect(text).toBe(MOCK.text);
      expect([...finishes]).toEqual(["stop"]);
      // Once, as several clients add up what they receive. Gemini reports it requested or not.
      expect(reported).toEqual(
        include_usage || format === "gemini" ? [MOCK.outputTokens] : [],
      );
    }
  });

  test("parallel tools, plain and streamed, and their results", async () => {
    const ask = {
      model,
      messages: user("Weather in both cities?"),
      tools: [WEATHER],
    };
    const client = clientOf();
    const whole = await client.chat.completions.create(ask);
    const stream = client.chat.completions.stream(ask);
    const streamed = await stream.finalChatCompletion();
    for (const { choices } of [whole, streamed]) {
      const [choice] = choices;
      expect(choice?.finish_reason).toBe("tool_calls");
      const calls = choice?.message.tool_calls ?? [];
      expect(calls.map(calledWith)).toEqual(
        MOCK.cities.map((city) => ["get_weather", { city }]),
      );
      expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
    }
    const message = streamed.choices[0]?.message;
    if (message === undefined) {
      throw new Error("no message was streamed");
    }
    const answer = await client.chat.completions.create({
      ...ask,
      messages: [
        ...ask.messages,
        message,
        ...(message.tool_calls ?? []).map((call, index) => ({
          role: "tool" as const,
          tool_call_id: call.id,
          content: `${20 + index} °C`,
        })),
      ],
    });
    expect(answer.choices[0]?.message.content).toBe("Weather: 20 °C, 21 °C");
  });

  test.each([
    { type: "json_object" } as const,
    {
      type: "json_schema",
      json_schema: {
        name: "city",
        strict: true,
        schema: {
          type: "object",
          properties: {
            city: { type: "string" },
            population: { type: "integer" },
          },
          required: ["city", "population"],
          additionalProperties: false,
        },
      },
    } as const,
  ])("JSON mode: $type", async (response_format) => {
    const answer = await clientOf().chat.completions.create({
      model,
      messages: user("A city, as JSON"),
      response_format,
    });
    expect(JSON.parse(answer.choices[0]?.message.content ?? "")).toEqual(
      MOCK.json,
    );
  });

  test("images, inline and by URL", async () => {
    const answer = await clientOf().chat.completions.create({
      model,
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            {
              type: "image_url",
              image_url: { url: `data:image/png;base64,${PIXEL}` },
            },
            {
              type: "image_url",
              image_url: { url: "https://example.com/a.png" },
            },
          ],
        },
      ],
    });
    expect(answer.choices[0]?.message.content).toBe("I see image/png and url");
  });

  test("Responses: text, a stream, tools and their results", async () => {
    const client = clientOf();
    const answer = await client.responses.create({ model, input: "Hello" });
    expect(answer.output_text).toBe(MOCK.text);
    expect(answer.usage).toMatchObject({
      input_tokens: MOCK.inputTokens,
      output_tokens: MOCK.outputTokens,
    });
    const streamed = await client.responses
      .stream({ model, input: "Hello", instructions: "Be kind." })
      .finalResponse();
    expect(streamed.output_text).toBe(MOCK.text);
    const input = [
      { role: "user" as const, content: "Weather in both cities?" },
    ];
    const tools = [RESPONSES_WEATHER];
    const request = { model, input, tools };
    const whole = await client.responses.create(request);
    const pieces = await client.responses.stream(request).finalResponse();
    for (const output of [whole.output, pieces.output]) {
      const calls = (output as readonly OpenAI.Responses.ResponseItem[]).filter(
        (item) => item.type === "function_call",
      );
      expect(
        calls.map(({ name, arguments: json }) => [name, JSON.parse(json)]),
      ).toEqual(MOCK.cities.map((city) => ["get_weather", { city }]));
    }
    const calls = whole.output.filter((item) => item.type === "function_call");
    const last = await client.responses.create({
      ...request,
      input: [
        ...input,
        ...calls,
        ...calls.map(({ call_id }, index) => ({
          type: "function_call_output" as const,
          call_id,
          output: `${20 + index} °C`,
        })),
      ],
    });
    expect(last.output_text).toBe("Weather: 20 °C, 21 °C");
  });

  test.each([
    [400, BadRequestError],
    [401, AuthenticationError],
    [403, PermissionDeniedError],
    [404, NotFoundError],
    [429, RateLimitError],
    [500, InternalServerError],
    [503, InternalServerError],
  ])(
    "the provider's %i has its class and hides its secret",
    async (status, kind) => {
      for (const stream of [false, true]) {
        const error = await caught(
          clientOf().chat.completions.create({
            model,
            messages: user(mockPrompt({ status })),
            stream,
          }),
        );
        expect(error).toBeInstanceOf(kind);
        const { message, type } = error as InstanceType<typeof kind>;
        expect(type).toBe("upstream_error");
        expect(message).toContain("refused with key [secret]");
      }
    },
  );

  test("a retry waits for the provider's retry-after", async () => {
    const { fetch, count } = countingFetch();
    const prompt = mockPrompt({ status: 429, failures: 1, retryAfter: 1 });
    const answer = await clientOf({
      fetch,
      maxRetries: 2,
    }).chat.completions.create({ model, messages: user(prompt) });
    expect(answer.choices[0]?.message.content).toBe(MOCK.text);
    expect(count()).toBe(2);
    const [first, second] = testbed.providers.requests.slice(-2);
    // Without retry-after the client waits at most half a second.
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThan(900);
  });

  test("an interrupted stream ends with an error", async () => {
    const asked = clientOf().chat.completions.create({
      model,
      messages: user(mockPrompt({ cutAfter: 2 })),
      stream: true,
    });
    // In a format with two events before the first content the call itself fails.
    const read = asked.then(collected);
    expect(await caught(read)).toBeInstanceOf(OpenAI.APIError);
  });
});

function calledWith(call: OpenAI.Chat.ChatCompletionMessageToolCall) {
  if (call.type !== "function") {
    throw new Error("not a function");
  }
  return [call.function.name, JSON.parse(call.function.arguments) as unknown];
}

test.each(["openai", "gemini", "azure"])(
  "embeddings through the format of %s, as numbers and as base64",
  async (format) => {
    for (const encoding_format of ["float", "base64", undefined] as const) {
      const answer = await clientOf().embeddings.create({
        model: `${format}-embed`,
        input: ["one", "two"],
        ...(encoding_format === undefined ? {} : { encoding_format }),
      });
      expect(answer.data.map(({ index }) => index)).toEqual([0, 1]);
      if (encoding_format !== "base64") {
        expect(answer.data[1]?.embedding).toEqual([1, 0.25, 0.5]);
      }
      expect(answer.usage.prompt_tokens).toBe(5);
    }
  },
);

test("completions, moderations, images and the list of models", async () => {
  const client = clientOf();
  const completion = await client.completions.create({
    model: "openai-chat",
    prompt: "Hello",
  });
  expect(completion.choices[0]?.text).toBe(MOCK.text);
  const moderation = await client.moderations.create({
    model: "openai-other",
    input: "Hello",
  });
  expect(moderation.results[0]?.flagged).toBe(false);
  const image = await client.images.generate({
    model: "openai-other",
    prompt: "A fox",
  });
  expect(image.data?.[0]?.b64_json).toBe("aGk=");
  const models = await collected(client.models.list());
  expect(models.map(({ id }) => id)).toContain("anthropic-chat");
  const model = await client.models.retrieve("openai-chat");
  expect(model.id).toBe("openai-chat");
});

test("an endpoint that the provider does not have is rejected with its name", async () => {
  const error = await caught(
    clientOf().embeddings.create({ model: "anthropic-chat", input: "Hello" }),
  );
  expect(error).toBeInstanceOf(BadRequestError);
  expect((error as BadRequestError).param).toBe("model");
});

test("Azure's client names the alias in the path", async () => {
  const client = new AzureOpenAI({
    endpoint: testbed.url,
    apiKey: key,
    apiVersion: "2024-10-21",
    maxRetries: 0,
  });
  const answer = await client.chat.completions.create({
    model: "anthropic-chat",
    messages: user("Hello"),
  });
  expect(answer.choices[0]?.message.content).toBe(MOCK.text);
  const stream = await client.chat.completions.create({
    model: "azure-chat",
    messages: user("Hello"),
    stream: true,
  });
  let text = "";
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? "";
  }
  expect(text).toBe(MOCK.text);
  const { data } = await client.embeddings.create({
    model: "azure-embed",
    input: "one",
  });
  expect(data).toHaveLength(1);
  // Without a deployment in the path.
  const response = await client.responses.create({
    model: "anthropic-chat",
    input: "Hello",
  });
  expect(response.output_text).toBe(MOCK.text);
  expect((await client.models.list()).data).toContainEqual(
    expect.objectContaining({ id: "azure-chat" }),
  );
});

test.each([
  "/openai/v1",
  "/engines/azure-chat",
  "/v1/engines/azure-chat",
  "//v1/",
  "/v1/v1",
])("a chat at the address %s", async (path) => {
  const client = clientOf({ baseURL: testbed.url + path });
  const answer = await client.chat.completions.create({
    model: "azure-chat",
    messages: user("Hello"),
  });
  expect(answer.choices[0]?.message.content).toBe(MOCK.text);
});

test("a provider that answers a streaming request without a stream is named in the error", async () => {
  const error = await caught(
    clientOf().chat.completions.create({
      model: "openai-chat",
      messages: user(mockPrompt({ neverStream: true })),
      stream: true,
    }),
  );
  expect(error).toBeInstanceOf(InternalServerError);
  expect(error).toMatchObject({ status: 502, type: "upstream_error" });
  expect((error as Error).message).toContain("did not answer with a stream");
});

describe("gateway errors by class", () => {
  const ask = (client: OpenAI, model = "openai-chat") =>
    caught(client.chat.completions.create({ model, messages: user("Hello") }));

  test("an unknown key", async () => {
    const error = await ask(clientOf({ apiKey: "sk-unknown-key" }));
    expect(error).toBeInstanceOf(AuthenticationError);
    expect(error).toMatchObject({ status: 401, type: "token_not_found_in_db" });
  });

  test("an unknown model, and a field of a wrong type", async () => {
    const unknown = await ask(clientOf(), "no-such-model");
    expect(unknown).toBeInstanceOf(BadRequestError);
    expect(unknown).toMatchObject({ type: "invalid_request_error" });
    const wrong = await caught(
      clientOf().chat.completions.create({
        model: "openai-chat",
        messages: user("Hello"),
        temperature: "warm" as unknown as number,
      }),
    );
    expect(wrong).toBeInstanceOf(BadRequestError);
    expect(wrong).toMatchObject({ param: "temperature", code: "400" });
  });

  test("a model that the key may not use", async () => {
    const apiKey = await testbed.createKey({ models: ["azure-chat"] });
    const error = await ask(clientOf({ apiKey }));
    expect(error).toBeInstanceOf(PermissionDeniedError);
    expect(error).toMatchObject({ type: "key_model_access_denied" });
  });

  test("an exceeded budget is not retried", async () => {
    const apiKey = await testbed.createKey({ max_budget: 0 });
    const { fetch, count } = countingFetch();
    const error = await ask(clientOf({ apiKey, fetch, maxRetries: 3 }));
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({ type: "budget_exceeded" });
    expect((error as BadRequestError).headers.get("x-should-retry")).toBe(
      "false",
    );
    expect(count()).toBe(1);
  });

  test("a rate limit has retry-after", async () => {
    const apiKey = await testbed.createKey({ rpm_limit: 1 });
    const client = clientOf({ apiKey });
    await client.chat.completions.create({
      model: "openai-chat",
      messages: user("Hello"),
    });
    const error = await ask(client);
    expect(error).toBeInstanceOf(RateLimitError);
    const { headers } = error as RateLimitError;
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    expect(headers.get("x-ratelimit-limit-requests")).toBe("1");
  });

  test("a pending alias, a provider that rejects the gateway's secret, an unknown route", async () => {
    const pending = await ask(clientOf(), "pending");
    expect(pending).toBeInstanceOf(InternalServerError);
    expect(pending).toMatchObject({ status: 503, type: "model_pending" });
    const wrongSecret = await ask(clientOf(), "wrong-secret");
    expect(wrongSecret).toMatchObject({ status: 401, type: "upstream_error" });
    const route = await caught(clientOf().files.list());
    expect(route).toBeInstanceOf(NotFoundError);
  });
});
