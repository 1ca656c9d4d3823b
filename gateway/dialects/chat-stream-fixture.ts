import fc from "fast-check";
import { createAnthropicWire } from "../providers/anthropic.ts";
import { geminiWire } from "../providers/gemini.ts";
import { openaiWire } from "../providers/openai-wire.ts";
import { eventsOf, fixture, translated } from "../providers/stream-fixture.ts";
import type { StreamPiece } from "../providers/wire.ts";
import type { ClientStream } from "./client-shape.ts";

const WIRES = {
  openai: openaiWire,
  anthropic: createAnthropicWire(() => 1_763_720_000_000),
  gemini: geminiWire,
};

/** Recordings of every provider format, as stream and whole. */
export const RECORDINGS: readonly (readonly [keyof typeof WIRES, string])[] = [
  ["openai", "text"],
  ["openai", "tools"],
  ["openai", "mixed"],
  ["openai", "length"],
  ["openai", "refusal"],
  ["anthropic", "text"],
  ["anthropic", "tools"],
  ["anthropic", "thinking"],
  ["anthropic", "server-tools"],
  ["anthropic", "refusal"],
  ["gemini", "text"],
  ["gemini", "tools"],
];

/** A recording in OpenAI's chat shape. */
export function chatPieces(
  provider: keyof typeof WIRES,
  name: string,
  places: readonly number[] = [],
): readonly StreamPiece[] {
  const bytes = fixture(`${provider}/${name}.sse`);
  return translated(WIRES[provider].stream("chat"), eventsOf(bytes, places));
}

export function chatAnswerOf(
  provider: keyof typeof WIRES,
  name: string,
): Buffer {
  return WIRES[provider].answer("chat", fixture(`${provider}/${name}.json`))
    .body;
}

export function passed(
  stream: ClientStream,
  pieces: readonly StreamPiece[],
): readonly StreamPiece[] {
  return pieces.flatMap((piece) => [...stream.push(piece)]);
}

/** Answers every request with this text: what a client reads without a network. */
export function fetchOf(
  text: string,
  contentType: string,
): (...request: unknown[]) => Promise<Response> {
  return () =>
    Promise.resolve(
      new Response(text, { headers: { "content-type": contentType } }),
    );
}

interface ChatContent {
  readonly reasoning: readonly string[];
  readonly texts: readonly string[];
  readonly calls: readonly {
    readonly input: Readonly<Record<string, unknown>>;
    /** Where its arguments are cut into pieces. */
    readonly cuts: readonly number[];
  }[];
  readonly order: Iterator<number>;
  readonly finish: string;
}

/** A chat stream and its whole answer: text, thinking, and tool calls whose pieces come interleaved. */
export const anyChatStream = fc
  .record({
    reasoning: fc.array(fc.string({ minLength: 1 }), { maxLength: 3 }),
    texts: fc.array(fc.string({ unit: "grapheme", minLength: 1 }), {
      maxLength: 4,
    }),
    calls: fc.array(
      fc.record({
        input: fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), {
          noNullPrototype: true,
        }),
        cuts: fc.array(fc.nat(), { maxLength: 3 }),
      }),
      { maxLength: 4 },
    ),
    order: fc.infiniteStream(fc.nat()),
    finish: fc.constantFrom("stop", "tool_calls", "length"),
  })
  .map((content) => ({
    pieces: piecesOf(content),
    answer: wholeAnswerOf(content),
  }));

const HEAD = { id: "chatcmpl-x", created: 1, model: "m" };
const USAGE = { prompt_tokens: 7, completion_tokens: 9, total_tokens: 16 };

function piecesOf(content: ChatContent): readonly StreamPiece[] {
  const { reasoning, texts, finish } = content;
  const deltas: readonly object[] = [
    ...reasoning.map((text) => ({ reasoning_content: text })),
    ...texts.map((text) => ({ content: text })),
    ...callDeltas(content),
  ];
  const chunk = (delta: object, reason: string | null): StreamPiece => ({
    kind: "pass",
    event: null,
    data: JSON.stringify({
      ...HEAD,
      choices: [{ index: 0, delta, finish_reason: reason }],
    }),
  });
  return [
    ...deltas.map((delta) => chunk(delta, null)),
    chunk({}, finish),
    {
      kind: "usage_only",
      event: null,
      data: JSON.stringify({ ...HEAD, choices: [], usage: USAGE }),
    },
    { kind: "done", event: null, data: "[DONE]" },
  ];
}

/** Calls start in order; after that their pieces are interleaved as `order` says. */
function callDeltas({ calls, order }: ChatContent): readonly object[] {
  const queues = calls.map(({ input, cuts }, index) =>
    callParts(index, JSON.stringify(input), cuts),
  );
  const deltas: object[] = [];
  let started = 0;
  while (queues.some((queue) => queue.length > 0)) {
    const open = queues.filter(
      (queue, index) => queue.length > 0 && index <= started,
    );
    const next = order.next().value as number | undefined;
    const part = open[(next ?? 0) % open.length]?.shift();
    if (part === undefined) {
      continue;
    }
    if (part.index === started) {
      started++;
    }
    deltas.push({ tool_calls: [part] });
  }
  return deltas;
}

interface CallPart {
  readonly index: number;
  readonly id?: string;
  readonly type?: "function";
  readonly function: { readonly name?: string; readonly arguments: string };
}

function callParts(
  index: number,
  written: string,
  cuts: readonly number[],
): CallPart[] {
  const places = [...cuts.map((cut) => cut % written.length)].sort(
    (a, b) => a - b,
  );
  const parts = [...places, written.length].map((end, at) =>
    written.slice(at === 0 ? 0 : places[at - 1], end),
  );
  return [
    {
      index,
      id: `call_${index}`,
      type: "function",
      function: { name: `tool_${index}`, arguments: "" },
    },
    ...parts.map((part) => ({ index, function: { arguments: part } })),
  ];
}

function wholeAnswerOf(content: ChatContent): Buffer {
  const { reasoning, texts, calls, finish } = content;
  const message = {
    role: "assistant",
    reasoning_content: reasoning.join(""),
    content: texts.join(""),
    tool_calls: calls.map(({ input }, index) => ({
      id: `call_${index}`,
      type: "function",
      function: {
        name: `tool_${index}`,
        arguments: JSON.stringify(input),
      },
    })),
  };
  return Buffer.from(
    JSON.stringify({
      ...HEAD,
      choices: [{ index: 0, finish_reason: finish, message }],
      usage: USAGE,
    }),
  );
}
