import { createOpenAI } from "@ai-sdk/openai";
import {
  APICallError,
  embedMany,
  generateText,
  jsonSchema,
  Output,
  RetryError,
  stepCountIs,
  streamText,
  tool,
  type LanguageModel,
} from "ai";
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

function hearth(apiKey = key, options: { fetch?: typeof fetch } = {}) {
  return createOpenAI({ baseURL: `${testbed.url}/v1`, apiKey, ...options });
}

/** The SDK uses the Responses API unless chat is selected. */
const SPOKEN = CHAT_FORMATS.flatMap((format) => [
  [format, "chat"] as const,
  [format, "responses"] as const,
]);

describe.each(SPOKEN)("through the format of %s, by %s", (format, api) => {
  const model = (provider = hearth()): LanguageModel =>
    provider[api](`${format}-chat`);

  test("plain and streamed answers, with their usage", async () => {
    const whole = await generateText({ model: model(), prompt: "Hello" });
    expect(whole.text).toBe(MOCK.text);
    expect(whole.finishReason).toBe("stop");
    expect(whole.usage).toMatchObject({
      inputTokens: MOCK.inputTokens,
      outputTokens: MOCK.outputTokens,
    });
    const streamed = streamText({ model: model(), prompt: "Hello" });
    const pieces = await collected(streamed.textStream);
    expect(pieces.length).toBeGreaterThan(1);
    expect(pieces.join("")).toBe(MOCK.text);
    expect(await streamed.usage).toMatchObject({
      inputTokens: MOCK.inputTokens,
      outputTokens: MOCK.outputTokens,
    });
  });

  test("parallel tools are run and their results sent back", async () => {
    const requestedCities: string[] = [];
    const ask = () => ({
      model: model(),
      prompt: "Weather in both cities?",
      tools: {
        get_weather: tool({
          description: "The weather in a city",
          inputSchema: jsonSchema<{ city: string }>({
            type: "object",
            properties: { city: { type: "string" } },
            required: ["city"],
            additionalProperties: false,
          }),
          execute: ({ city }) => {
            requestedCities.push(city);
            return `sunny in ${city}`;
          },
        }),
      },
      stopWhen: stepCountIs(3),
    });
    const reply = "Weather: sunny in Zürich, sunny in Genève";
    const whole = await generateText(ask());
    expect(whole.text).toBe(reply);
    expect(await streamText(ask()).text).toBe(reply);
    expect(requestedCities).toEqual([...MOCK.cities, ...MOCK.cities]);
  });

  test("JSON with a schema, and images", async () => {
    const { output } = await generateText({
      model: model(),
      prompt: "A city, as JSON",
      output: Output.object({
        schema: jsonSchema<{ city: string; population: number }>({
          type: "object",
          properties: {
            city: { type: "string" },
            population: { type: "integer" },
          },
          required: ["city", "population"],
          additionalProperties: false,
        }),
      }),
    });
    expect(output).toEqual(MOCK.json);
    const seen = await generateText({
      model: model(),
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            {
              type: "file",
              mediaType: "image/png",
              data: Buffer.from(PIXEL, "base64"),
            },
          ],
        },
      ],
    });
    expect(seen.text).toBe("I see image/png");
  });

  test("errors have the gateway's message, and only temporary ones are retried", async () => {
    const rejected = await caught(
      generateText({ model: model(), prompt: mockPrompt({ status: 400 }) }),
    );
    expect(APICallError.isInstance(rejected)).toBe(true);
    expect(rejected).toMatchObject({ statusCode: 400, isRetryable: false });
    expect((rejected as Error).message).toContain("[secret]");
    const { fetch, count } = countingFetch();
    const failed = await caught(
      generateText({
        model: model(hearth(key, { fetch })),
        prompt: mockPrompt({ status: 429, retryAfter: 0 }),
        maxRetries: 1,
      }),
    );
    expect(RetryError.isInstance(failed)).toBe(true);
    expect(count()).toBe(2);
  });
});

test.each(["openai", "gemini", "azure"])(
  "embeddings through the format of %s",
  async (format) => {
    const { embeddings } = await embedMany({
      model: hearth().embedding(`${format}-embed`),
      values: ["one", "two"],
    });
    expect(embeddings).toEqual([
      [0, 0.25, 0.5],
      [1, 0.25, 0.5],
    ]);
  },
);

test("gateway errors: an unknown key, an exceeded budget", async () => {
  const spent = await testbed.createKey({ max_budget: 0 });
  for (const [apiKey, statusCode] of [
    ["sk-unknown-key", 401],
    [spent, 400],
  ] as const) {
    const { fetch, count } = countingFetch();
    const error = await caught(
      generateText({
        model: hearth(apiKey, { fetch })("openai-chat"),
        prompt: "Hello",
      }),
    );
    expect(error).toMatchObject({ statusCode });
    expect(count()).toBe(1);
  }
});
