import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { countTokens as countTokensCl100k } from "gpt-tokenizer/encoding/cl100k_base";
import { beforeAll, describe, expect, test } from "vitest";
import { createTokenizers, encodingOf } from "./tokenizers.ts";
import type { Call } from "../calls/call.ts";
import { createStreamReader, readAnswer } from "../providers/openai.ts";
import { testDeployment } from "../providers/stream-fixture.ts";
import { createTokenCounter, type TokenCounter } from "./tokens.ts";
import { usageOf } from "./usage.ts";

let counter: TokenCounter;
beforeAll(async () => {
  counter = createTokenCounter();
  await counter.warm(["gpt-5-mini", "gpt-4"]);
});

const source = (name: string): string =>
  readFileSync(join(import.meta.dirname, name), "utf8");
const repeatTo = (text: string, length: number): string =>
  text.repeat(Math.ceil(length / text.length)).slice(0, length);

const ORDINARY: Readonly<Record<string, string>> = {
  prose: repeatTo(source("../../LICENSE"), 50_000),
  code: repeatTo(source("tokens.ts") + source("../pricing/prices.ts"), 50_000),
  json: repeatTo(source("../../package.json"), 50_000),
  yaml: repeatTo(source("../../config/gateway.yaml"), 50_000),
  german: repeatTo(
    "Die Straßenbahn fährt heute wegen Gleisbauarbeiten nicht bis zur Endhaltestelle. ",
    50_000,
  ),
  russian: repeatTo(
    "Завтра утром мы поедем на дачу и будем собирать яблоки. ",
    50_000,
  ),
  japanese: repeatTo(
    "明日の会議は午前十時から始まりますので、資料を用意してください。",
    50_000,
  ),
  digits: repeatTo("2026-08-17 01:00:04 10.0.0.17 200 81234\n", 50_000),
  mixed: `${repeatTo(source("../../LICENSE"), 30_000)}${repeatTo(source("../pricing/prices.ts"), 20_000)}`,
};

test.each(Object.entries(ORDINARY))(
  "a long %s prompt is counted at or slightly above its tokens",
  (_name, text) => {
    const exact = countTokens(text);
    const estimate = counter.countChat(
      { messages: [{ role: "user", content: text }] },
      "gpt-5-mini",
    );
    expect(estimate).toBeGreaterThanOrEqual(exact);
    expect(estimate).toBeLessThan(exact * 1.4);
  },
);

test.each(
  // Columns of digits have more tokens than half their bytes; the bound holds for texts.
  Object.entries(ORDINARY).filter(([name]) => name !== "digits"),
)("before a tokenizer is loaded, %s is bounded by its size", (_name, text) => {
  expect(
    createTokenizers().estimate(text, "o200k_base"),
  ).toBeGreaterThanOrEqual(countTokens(text) * 0.99);
});

test("a short text is counted exactly, with the encoding of its model", () => {
  const text = "The quick brown fox — быстрая лиса — 速い狐 🦊.";
  expect(counter.countText(text, "gpt-5-mini")).toBe(countTokens(text));
  expect(counter.countText(text, "gpt-4")).toBe(countTokensCl100k(text));
  expect(counter.countText("", "gpt-5-mini")).toBe(0);
});

test("the billed count of a long text is exact except at the cuts", () => {
  for (const text of Object.values(ORDINARY)) {
    const exact = countTokens(text);
    const counted = counter.countText(text, "gpt-5-mini");
    expect(Math.abs(counted - exact) / exact).toBeLessThan(0.01);
  }
});

test("the billed count of an answer longer than any is close", () => {
  const text = Object.values(ORDINARY).join("").repeat(4);
  const exact = countTokens(text);
  const counted = counter.countText(text, "gpt-5-mini");
  expect(Math.abs(counted - exact) / exact).toBeLessThan(0.01);
});

// Counted in full, or with a quadratic search for spaces, this takes longer than a test may.
test("the billed count of an answer without spaces or an end takes little time", () => {
  expect(
    counter.countText("7".repeat(250_000_000), "gpt-5-mini"),
  ).toBeGreaterThan(80_000_000);
});

test("text that looks like a special token is text", () => {
  expect(counter.countText("<|endoftext|>", "gpt-5-mini")).toBeGreaterThan(1);
});

test("any text has a count above zero", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "binary", minLength: 1, maxLength: 3_000 }),
      (text) => {
        expect(counter.countText(text, "gpt-5-mini")).toBeGreaterThan(0);
        expect(
          counter.countChat(
            { messages: [{ role: "user", content: text }] },
            "x",
          ),
        ).toBeGreaterThan(0);
      },
    ),
    { numRuns: 50 },
  );
});

test.each<[string, string]>([
  ["gpt-4", "cl100k_base"],
  ["gpt-4-turbo", "cl100k_base"],
  ["gpt-3.5-turbo", "cl100k_base"],
  ["text-embedding-3-small", "cl100k_base"],
  ["gpt-4o-mini", "o200k_base"],
  ["gpt-4.1", "o200k_base"],
  ["openai/gpt-oss-20b", "o200k_base"],
  ["claude-sonnet-4-5", "o200k_base"],
  ["llama3.2:3b", "o200k_base"],
])("%s counts with %s", (model, encoding) => {
  expect(encodingOf(model)).toBe(encoding);
});

describe("a body's input", () => {
  const chat = (...content: unknown[]) =>
    counter.countChat(
      {
        messages: [
          {
            role: "user",
            content: content.length === 1 ? content[0] : content,
          },
        ],
      },
      "gpt-4o",
    );

  test("counts a message as OpenAI reports it", () => {
    // `usage.prompt_tokens` of gpt-4o for a single message "hi".
    expect(chat("hi")).toBe(8);
  });

  test("counts text parts as text, images by their detail", () => {
    const text = { type: "text", text: "hi" };
    expect(chat([text])).toBe(8);
    const image = {
      type: "image_url",
      image_url: { url: `data:image/png;base64,${"A".repeat(400_000)}` },
    };
    expect(chat(text, image)).toBe(8 + 1_600);
    expect(
      chat(text, {
        type: "image_url",
        image_url: { url: "https://x/y.png", detail: "low" },
      }),
    ).toBe(8 + 85);
    expect(
      chat(text, { type: "image", source: { type: "base64", data: "AAAA" } }),
    ).toBe(8 + 1_600);
  });

  test("counts the images of small models as these do", () => {
    const image = (detail: string) => [
      { type: "image_url", image_url: { url: "https://x/y.png", detail } },
    ];
    const ask = (model: string, detail: string) =>
      counter.countChat(
        { messages: [{ role: "user", content: image(detail) }] },
        model,
      ) - counter.countChat({ messages: [{ role: "user" }] }, model);
    expect(ask("gpt-4o-mini-2024-07-18", "high")).toBe(2_833 + 8 * 5_667);
    expect(ask("gpt-4o-mini", "low")).toBe(2_833);
    expect(ask("gpt-4.1-mini", "high")).toBe(Math.ceil(1_536 * 1.62));
    expect(ask("gpt-4.1-nano", "high")).toBe(Math.ceil(1_536 * 2.46));
    expect(ask("gpt-4o", "high")).toBe(1_600);
  });

  test("counts audio and files by their size, not as text", () => {
    expect(
      chat({
        type: "input_audio",
        input_audio: { data: "A".repeat(5_000), format: "mp3" },
      }),
    ).toBe(7 + 10);
    expect(
      chat({ type: "file", file: { file_data: "A".repeat(300_000) } }),
    ).toBe(7 + 10_000);
    expect(chat({ type: "file", file: { file_id: "file-1" } })).toBe(7 + 1_500);
  });

  test("counts screenshots, videos and files of other kinds by their size, not as text", () => {
    const data = "A".repeat(1_500_000);
    const screenshot = {
      type: "computer_call_output",
      call_id: "1",
      output: {
        type: "computer_screenshot",
        image_url: `data:image/png;base64,${data}`,
      },
    };
    const around = counter.countChat({ input: [{ type: "x" }] }, "gpt-5");
    expect(counter.countChat({ input: [screenshot] }, "gpt-5")).toBe(
      around + 1_600,
    );
    const url = `data:video/mp4;base64,${data}`;
    const none = chat([]);
    expect(chat([{ type: "video_url", video_url: { url } }])).toBe(
      none + Math.ceil(url.length / 500),
    );
    expect(chat([{ type: "hologram", hologram: { url } }])).toBe(
      none + Math.ceil(url.length / 30),
    );
  });

  test("counts tools, tool calls, results, system prompts and formats", () => {
    const bare = counter.countChat({ messages: [] }, "gpt-4o");
    const more = (body: object) =>
      counter.countChat({ messages: [], ...body }, "gpt-4o") - bare;
    expect(
      more({
        tools: [
          { type: "function", function: { name: "weather", parameters: {} } },
        ],
      }),
    ).toBeGreaterThan(15);
    expect(
      more({
        messages: [
          {
            role: "assistant",
            content: null,
            tool_calls: [{ function: { name: "f", arguments: '{"a":1}' } }],
          },
        ],
      }),
    ).toBeGreaterThan(10);
    expect(more({ system: "You are a helpful assistant." })).toBe(6);
    expect(
      more({
        messages: [
          {
            role: "user",
            content: [{ type: "tool_result", content: "sunny and warm" }],
          },
        ],
      }),
    ).toBeGreaterThan(6);
    expect(more({ response_format: { type: "json_schema" } })).toBeGreaterThan(
      3,
    );
    expect(more({ input: "hello there" })).toBe(2);
    expect(
      more({
        input: [
          {
            role: "user",
            content: [{ type: "input_text", text: "hello there" }],
          },
        ],
      }),
    ).toBe(6);
    for (const item of [
      { type: "custom_tool_call", input: "hello there" },
      { type: "custom_tool_call_output", output: "hello there" },
      { type: "tool_search_call", arguments: { query: "hello" } },
      { type: "tool_search_output", tools: [{ type: "namespace" }] },
    ]) {
      expect(more({ input: [item] })).toBeGreaterThan(more({ input: [{}] }));
    }
    expect(more({ prompt: ["hello there"] })).toBe(2);
  });

  test("never fails on a wrong shape", () => {
    fc.assert(
      fc.property(fc.anything({ maxDepth: 5 }), (content) => {
        fc.pre(isJson(content));
        for (const body of [
          content,
          { messages: content },
          { messages: [content] },
          { messages: [{ content }] },
          { input: content },
        ]) {
          expect(counter.countChat(body, "gpt-4o")).toBeGreaterThan(0);
        }
        expect(
          counter.countEmbeddingInput(content, "gpt-4o"),
        ).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: 200 },
    );
  });
});

function isJson(value: unknown): boolean {
  try {
    return JSON.stringify(value) !== undefined;
  } catch {
    return false;
  }
}

test("embedding input may be text, texts, tokens, or lists of tokens", () => {
  const count = (input: unknown) =>
    counter.countEmbeddingInput(input, "text-embedding-3-small");
  expect(count("hello there")).toBe(2);
  expect(count(["hello there", "hello there"])).toBe(5);
  expect(count([1, 2, 3])).toBe(3);
  expect(count([[1, 2], [3]])).toBe(3);
  expect(count(undefined)).toBe(0);
});

describe("the expected output", () => {
  test("is 4,096 before any call, and the 99th percentile after many", () => {
    const { outputEstimate, recordOutput } = createTokenCounter();
    expect(outputEstimate("a")).toBe(4_096);
    recordOutput("a", 10);
    expect(outputEstimate("a")).toBeGreaterThan(3_000);
    expect(outputEstimate("b")).toBe(4_096);
    for (let tokens = 1; tokens <= 200; tokens++) {
      recordOutput("a", tokens);
    }
    expect(outputEstimate("a")).toBeGreaterThanOrEqual(197);
    expect(outputEstimate("a")).toBeLessThanOrEqual(200);
  });

  test("rises at once and forgets after 256 answers", () => {
    const { outputEstimate, recordOutput } = createTokenCounter();
    for (let call = 0; call < 100; call++) {
      recordOutput("a", 50);
    }
    expect(outputEstimate("a")).toBe(50);
    recordOutput("a", 9_000);
    recordOutput("a", 9_000);
    recordOutput("a", 9_000);
    expect(outputEstimate("a")).toBe(9_000);
    for (let call = 0; call < 272; call++) {
      recordOutput("a", 50);
    }
    expect(outputEstimate("a")).toBe(50);
  });

  test("is never below the 99th percentile of the recent answers", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(5_000), { minLength: 30, maxLength: 300 }),
        (outputs) => {
          const { outputEstimate, recordOutput } = createTokenCounter();
          for (const tokens of outputs) {
            recordOutput("a", tokens);
          }
          const recent = outputs.slice(-240);
          const above = recent.filter(
            (tokens) => tokens > outputEstimate("a"),
          ).length;
          expect(above).toBeLessThanOrEqual(Math.ceil(recent.length / 100) + 2);
        },
      ),
      { numRuns: 50 },
    );
  });

  test("is that of one of several answers to a call (`n`), whole or streamed", () => {
    const call = {
      body: {},
      inputTokens: 1,
      measure: null,
      group: { alias: "a" },
    } as unknown as Call;
    const indices = Array.from({ length: 8 }, (_, index) => index);
    const message = { content: "Hi" };
    const usage = { prompt_tokens: 1, completion_tokens: 800 };
    const whole = { choices: indices.map(() => ({ message })), usage };
    const reader = createStreamReader();
    for (const index of indices) {
      const chunk = { choices: [{ index, delta: message }], usage };
      reader.read({ event: null, data: JSON.stringify(chunk) });
    }
    const answers = [
      readAnswer(Buffer.from(JSON.stringify(whole))),
      reader.facts(),
    ];
    for (const facts of answers) {
      const tokens = createTokenCounter();
      for (let calls = 0; calls < 20; calls++) {
        usageOf(tokens, call, testDeployment(), facts);
      }
      expect(tokens.outputEstimate("a")).toBe(100);
    }
  });

  test("does not grow with the number of requested names", () => {
    const { outputEstimate, recordOutput } = createTokenCounter();
    for (let name = 0; name < 1_001; name++) {
      recordOutput(`openai/${name}`, 1);
    }
    expect(outputEstimate("openai/0")).toBe(4_096);
    expect(outputEstimate("openai/1000")).toBeLessThan(4_096);
  });
});

describe("the margin of a deployment", () => {
  const foreign = {
    id: "d",
    provider: "anthropic",
    providerName: "anthropic",
  } as const;

  test("is 1 for models with a known tokenizer, more for others", () => {
    const { margin } = createTokenCounter();
    expect(
      margin({ id: "a", provider: "openai", providerName: "openai" }),
    ).toBe(1);
    expect(margin(foreign)).toBe(1.3);
  });

  test("approaches the reported ratio, rising fast and falling slowly", () => {
    const { learn, margin } = createTokenCounter();
    learn("d", 1_000, 1_500);
    expect(margin(foreign)).toBeGreaterThan(1.3);
    for (let call = 0; call < 20; call++) {
      learn("d", 1_000, 1_500);
    }
    expect(margin(foreign)).toBeCloseTo(1.5, 2);
    learn("d", 1_000, 1_000);
    expect(margin(foreign)).toBeGreaterThan(1.47);
    for (let call = 0; call < 300; call++) {
      learn("d", 1_000, 1_100);
    }
    expect(margin(foreign)).toBeCloseTo(1.1, 2);
  });

  test("stays within its bounds for any report", () => {
    const { learn, margin } = createTokenCounter();
    for (const [counted, reported] of [
      [1, 1e9],
      [1_000, 1e9],
      [0, 5],
      [5, 0],
      [NaN, 1],
      [1_000, 1],
    ] as const) {
      for (let call = 0; call < 50; call++) {
        learn("d", counted, reported);
      }
      expect(margin(foreign)).toBeGreaterThanOrEqual(1);
      expect(margin(foreign)).toBeLessThanOrEqual(4);
    }
  });

  test("hardly changes for a few tokens of a short prompt", () => {
    const { learn, margin } = createTokenCounter();
    learn("d", 4, 12);
    expect(margin(foreign)).toBeCloseTo(1.3, 2);
  });
});
