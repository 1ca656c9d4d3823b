import { readFileSync } from "node:fs";
import fc from "fast-check";
import { secret } from "../config/secret.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { SseParser, type SseEvent } from "../../core/sse.ts";
import type { StreamPiece, StreamTranslator } from "./wire.ts";

/** Recorded streams and answers of providers, for tests. */
export function fixture(path: string): Buffer {
  return readFileSync(new URL(`./fixtures/${path}`, import.meta.url));
}

/** Offsets to cut bytes at, also inside characters, lines and events. */
export const cuts = fc.array(fc.nat(), { maxLength: 40 });

export function eventsOf(
  bytes: Uint8Array,
  places: readonly number[] = [],
): readonly SseEvent[] {
  const parser = new SseParser();
  const sorted = [
    ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b),
    bytes.length,
  ];
  let from = 0;
  const events = sorted.flatMap((to) => {
    const part = bytes.subarray(from, to);
    from = to;
    return [...parser.push(part)];
  });
  return [...events, ...parser.end()];
}

/** All pieces that a translator makes of a stream, including its end. */
export function translated(
  translator: StreamTranslator,
  events: readonly SseEvent[],
): readonly StreamPiece[] {
  const pieces = events.flatMap((event) => [...translator.push(event)]);
  return pieces.some(({ kind }) => kind === "done")
    ? pieces
    : [...pieces, ...translator.end()];
}

interface Chunk {
  readonly id: string;
  readonly model: string;
  readonly choices: readonly {
    readonly delta: Readonly<Record<string, unknown>>;
    readonly finish_reason: string | null;
  }[];
  readonly usage?: unknown;
}

interface Call {
  id?: string;
  type?: string;
  function: { name: string; arguments: string };
}

/** The message that a client assembles from chunks: texts and lists are concatenated, tool calls by index. */
export function messageOf(pieces: readonly StreamPiece[]): {
  readonly id: string;
  readonly model: string;
  readonly message: Readonly<Record<string, unknown>>;
  readonly finishReason: string | null;
  readonly usage: unknown;
} {
  const message: Record<string, unknown> = {};
  const calls: Call[] = [];
  let finishReason: string | null = null;
  let usage: unknown = null;
  let head = { id: "", model: "" };
  for (const { kind, data } of pieces) {
    if (kind === "done" || kind === "error") {
      continue;
    }
    const chunk = JSON.parse(data) as Chunk;
    head = { id: chunk.id, model: chunk.model };
    usage = chunk.usage ?? usage;
    for (const { delta, finish_reason: reason } of chunk.choices) {
      finishReason = reason ?? finishReason;
      for (const [name, value] of Object.entries(delta)) {
        if (name === "tool_calls") {
          addCalls(calls, value);
        } else if (name !== "role" && typeof value === "string") {
          message[name] = ((message[name] as string | undefined) ?? "") + value;
        } else if (Array.isArray(value)) {
          message[name] = [
            ...((message[name] as unknown[] | undefined) ?? []),
            ...(value as unknown[]),
          ];
        } else {
          message[name] = value;
        }
      }
    }
  }
  if (calls.length > 0) {
    message["tool_calls"] = calls;
    if (message["content"] === "") {
      message["content"] = null;
    }
  }
  return { ...head, message, finishReason, usage };
}

function addCalls(calls: Call[], value: unknown): void {
  for (const part of value as (Call & { index: number })[]) {
    const { index, function: called, ...rest } = part;
    const call = (calls[index] ??= { function: { name: "", arguments: "" } });
    Object.assign(call, rest);
    call.function.name += called.name ?? "";
    call.function.arguments += called.arguments ?? "";
  }
}

/** Arguments may differ in white space between a stream and a whole answer. */
export function withParsedArguments(
  message: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const calls = message["tool_calls"] as readonly Call[] | undefined;
  return calls === undefined
    ? message
    : {
        ...message,
        tool_calls: calls.map((call) => ({
          ...call,
          function: {
            name: call.function.name,
            arguments: JSON.parse(call.function.arguments) as unknown,
          },
        })),
      };
}

/** A deployment for tests of formats. */
export function testDeployment(
  fields: Partial<PricedDeployment> = {},
): PricedDeployment {
  return {
    id: "d1",
    alias: "alias",
    teamId: null,
    provider: "openai",
    providerName: "openai",
    model: "model-1",
    apiBase: "https://provider.example",
    publicOnly: false,
    apiKey: secret("provider-key"),
    apiVersion: null,
    pending: null,
    blocked: false,
    rpm: null,
    tpm: null,
    weight: 1,
    timeoutMs: null,
    streamTimeoutMs: null,
    idleTimeoutMs: null,
    hedgeAfterMs: null,
    maxRetries: null,
    guardrails: [],
    tags: [],
    tagRegex: [],
    headers: {},
    defaults: {},
    dropParams: null,
    droppedParams: [],
    cacheMarks: false,
    local: null,
    runner: null,
    clientParams: [],
    prices: null,
    mode: "chat",
    baseModel: null,
    info: {},
    priceCard: null,
    ...fields,
  };
}
