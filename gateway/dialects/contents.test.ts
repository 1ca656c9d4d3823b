import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CallError } from "../http/errors.ts";
import { cuts } from "../providers/stream-fixture.ts";
import type { StreamPiece } from "../providers/wire.ts";
import {
  anyChatStream,
  chatAnswerOf,
  chatPieces,
  RECORDINGS,
} from "./chat-stream-fixture.ts";
import { contentsAnswer } from "./contents-answer.ts";
import { contentsErrorOf } from "./contents-error.ts";
import { chatOfContents } from "./contents-request.ts";
import { ContentsStream } from "./contents-stream.ts";

interface Part {
  readonly text?: string;
  readonly thought?: boolean;
  readonly thoughtSignature?: string;
  readonly functionCall?: unknown;
}

interface Answer {
  readonly candidates: readonly {
    readonly content: {
      readonly role: string;
      readonly parts: readonly Part[];
    };
    readonly finishReason?: string;
  }[];
  readonly usageMetadata?: unknown;
}

function wholeOf(bytes: Buffer): Answer {
  return contentsAnswer(bytes.toString()) as unknown as Answer;
}

/** The chunks of a stream as one answer: adjacent texts of a kind are one. */
function assemble(pieces: readonly StreamPiece[]): Answer {
  const stream = new ContentsStream();
  const chunks = pieces.flatMap(({ data }) =>
    stream.push(data),
  ) as unknown as readonly Answer[];
  const parts: Part[] = [];
  for (const part of chunks.flatMap(
    ({ candidates: [first] }) => first?.content.parts ?? [],
  )) {
    const last = parts.at(-1);
    if (
      last?.text !== undefined &&
      part.text !== undefined &&
      last.thought === part.thought
    ) {
      parts[parts.length - 1] = { ...last, text: last.text + part.text };
    } else {
      parts.push(part);
    }
  }
  const last = chunks.at(-1) as Answer;
  const [candidate] = last.candidates;
  return {
    ...last,
    candidates: [{ ...candidate, content: { role: "model", parts } }],
  };
}

describe.each(RECORDINGS)("%s %s", (provider, name) => {
  test("a stream, cut anywhere, equals the whole answer", () => {
    const whole = wholeOf(chatAnswerOf(provider, name));
    fc.assert(
      fc.property(cuts, (places) => {
        const streamed = assemble(chatPieces(provider, name, places));
        expect(streamed).toEqual(whole);
      }),
      { numRuns: 10 },
    );
  });
});

test("interleaved tool calls are whole parts at the end of a stream", () => {
  fc.assert(
    fc.property(anyChatStream, ({ pieces, answer }) => {
      expect(assemble(pieces)).toEqual(wholeOf(answer));
    }),
  );
});

test("thoughts, texts, the reason of the end and usage have Gemini's names", () => {
  const { candidates, usageMetadata } = wholeOf(
    chatAnswerOf("anthropic", "thinking"),
  );
  expect(candidates).toMatchObject([
    { finishReason: "STOP", content: { parts: [{ thought: true }, {}] } },
  ]);
  expect(usageMetadata).toEqual({
    promptTokenCount: 2_070,
    cachedContentTokenCount: 1_800,
    candidatesTokenCount: 50,
    thoughtsTokenCount: 70,
    totalTokenCount: 2_190,
  });
});

test("thinking comes back with the call that the client sends back, in base64 of either alphabet", () => {
  const blocks = [{ type: "thinking", thinking: "hm ~~~???", signature: "Eq" }];
  const message = {
    content: null,
    thinking_blocks: blocks,
    tool_calls: [{ id: "a", function: { name: "f", arguments: '{"x":1}' } }],
  };
  const choice = { index: 0, message, finish_reason: "tool_calls" };
  const answer = wholeOf(Buffer.from(JSON.stringify({ choices: [choice] })));
  const [call] = answer.candidates[0]?.content.parts ?? [];
  const signature = call?.thoughtSignature ?? "";
  for (const thoughtSignature of [
    signature,
    signature.replaceAll("+", "-").replaceAll("/", "_"),
  ]) {
    const parts = [{ ...call, thoughtSignature }];
    expect(
      chatOfContents({ contents: [{ role: "model", parts }] }),
    ).toMatchObject({
      messages: [
        {
          role: "assistant",
          thinking_blocks: blocks,
          tool_calls: [
            { id: "a", function: { name: "f", arguments: '{"x":1}' } },
          ],
        },
      ],
    });
  }
});

test("a conversation is one of chat, by the names of JSON and of the schema", () => {
  const body = {
    system_instruction: { parts: [{ text: "Be kind." }] },
    contents: [
      {
        role: "user",
        parts: [
          { text: "What is this?" },
          { inline_data: { mime_type: "image/png", data: "aGk=" } },
          { inlineData: { mimeType: "audio/wav", data: "aGk=" } },
          { inlineData: { mimeType: "text/plain", data: "aGk=" } },
          { inlineData: { mimeType: "application/pdf", data: "aGk=" } },
          { fileData: { mimeType: "image/png", fileUri: "https://x/y.png" } },
        ],
      },
      {
        role: "model",
        parts: [
          { text: "Hm.", thought: true },
          { text: "I look." },
          { functionCall: { name: "look", args: { at: 1 } } },
          { functionCall: { name: "look", args: { at: 2 } } },
          { functionCall: { name: "ask", id: "own" } },
        ],
      },
      {
        role: "user",
        parts: [
          { functionResponse: { name: "look", response: { output: "one" } } },
          { functionResponse: { name: "ask", id: "own", response: {} } },
          { functionResponse: { name: "look", response: { output: 2 } } },
          { text: "Well?" },
        ],
      },
    ],
  };
  const call = (id: string, name: string, args: string) => ({
    id,
    type: "function",
    function: { name, arguments: args },
  });
  expect(chatOfContents(body)["messages"]).toEqual([
    { role: "system", content: "Be kind." },
    {
      role: "user",
      content: [
        { type: "text", text: "What is this?" },
        {
          type: "image_url",
          image_url: { url: "data:image/png;base64,aGk=" },
        },
        { type: "input_audio", input_audio: { data: "aGk=", format: "wav" } },
        { type: "text", text: "hi" },
        {
          type: "file",
          file: {
            filename: "document",
            file_data: "data:application/pdf;base64,aGk=",
          },
        },
        { type: "image_url", image_url: { url: "https://x/y.png" } },
      ],
    },
    {
      role: "assistant",
      content: "I look.",
      tool_calls: [
        call("call_1", "look", '{"at":1}'),
        call("call_2", "look", '{"at":2}'),
        call("own", "ask", "{}"),
      ],
    },
    { role: "tool", tool_call_id: "call_1", content: "one" },
    { role: "tool", tool_call_id: "own", content: "{}" },
    { role: "tool", tool_call_id: "call_2", content: '{"output":2}' },
    { role: "user", content: "Well?" },
  ]);
});

const HELLO = [{ role: "user", parts: [{ text: "Hello" }] }];

test("tools, settings and schemas are those of chat", () => {
  const city = {
    type: "OBJECT",
    properties: {
      // A property may have the name of a keyword.
      type: { type: "STRING", nullable: true },
      all: { type: "ARRAY", items: { type: "INTEGER" }, minItems: "1" },
    },
    propertyOrdering: ["type"],
  };
  const schema = {
    type: "object",
    properties: {
      type: { type: ["string", "null"] },
      all: { type: "array", items: { type: "integer" }, minItems: 1 },
    },
  };
  const body = {
    contents: HELLO,
    tools: [
      {
        functionDeclarations: [
          { name: "a", description: "A", parameters: city },
          { name: "b", parametersJsonSchema: { type: "object" } },
        ],
      },
    ],
    toolConfig: {
      functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["a"] },
    },
    generationConfig: {
      temperature: 0.5,
      topK: 64,
      maxOutputTokens: 9,
      stopSequences: ["x"],
      responseMimeType: "application/json",
      responseSchema: city,
      thinkingConfig: { thinkingBudget: 9_000 },
    },
  };
  expect(chatOfContents(body)).toEqual({
    messages: [{ role: "user", content: "Hello" }],
    tools: [
      {
        type: "function",
        function: { name: "a", description: "A", parameters: schema },
      },
    ],
    tool_choice: "required",
    temperature: 0.5,
    top_k: 64,
    max_tokens: 9,
    stop: ["x"],
    response_format: {
      type: "json_schema",
      json_schema: { name: "answer", schema },
    },
    reasoning_effort: "high",
  });
});

test.each([
  [{ cachedContent: "x" }, "cachedContent"],
  [{ tools: [{ codeExecution: {} }] }, "tools[0].codeExecution"],
  [
    { generationConfig: { candidateCount: 2 } },
    "generationConfig.candidateCount",
  ],
  [
    { generationConfig: { responseModalities: ["IMAGE"] } },
    "generationConfig.responseModalities",
  ],
  [{ contents: [{ parts: [{ executableCode: {} }] }] }, "contents[0].parts[0]"],
  [
    { contents: [{ parts: [{ fileData: { fileUri: "files/x" } }] }] },
    "contents[0].parts[0]",
  ],
])("what chat does not have is rejected: %j", (fields, param) => {
  const body = { contents: HELLO, ...fields };
  expect(() => chatOfContents(body)).toThrow(
    expect.objectContaining({ kind: "invalid_request", details: { param } }),
  );
});

test("any body is a chat, or is rejected with the name of a field", () => {
  const fields = ["contents", "tools", "generationConfig", "toolConfig"];
  const any = fc.object({
    key: fc.constantFrom(
      ...fields,
      "parts",
      "text",
      "role",
      "functionCall",
      "functionResponse",
      "inlineData",
      "functionDeclarations",
    ),
    maxDepth: 4,
  });
  fc.assert(
    fc.property(any, (body) => {
      try {
        chatOfContents(body as Record<string, unknown>);
      } catch (error) {
        expect(error).toBeInstanceOf(CallError);
        expect((error as CallError).details.param).not.toBe("");
      }
    }),
  );
});

test("an error says when to try again, as Google's do", () => {
  const error = new CallError("rate_limit_exceeded", "Too many.", {
    headers: { "retry-after": "7" },
  });
  expect(contentsErrorOf(error)).toEqual({
    error: {
      code: 429,
      message: "Too many.",
      status: "RESOURCE_EXHAUSTED",
      details: [
        {
          "@type": "type.googleapis.com/google.rpc.RetryInfo",
          retryDelay: "7s",
        },
      ],
    },
  });
});
