import { z } from "zod";
import { SseParser } from "../../core/sse.ts";
import { Failure } from "../../core/failure.ts";
import { Unanswered, type AdminApi } from "./admin-api.ts";

/** A part of an answer, in the order in which it arrives. */
type ChatEvent =
  | { readonly kind: "started"; readonly callId: string }
  | { readonly kind: "text" | "reasoning"; readonly text: string }
  | {
      /** A part of a tool call: its name at first, then pieces of its arguments. */
      readonly kind: "tool";
      readonly at: number;
      readonly name: string;
      readonly arguments: string;
    }
  | { readonly kind: "finished"; readonly reason: string }
  | {
      readonly kind: "usage";
      readonly inputTokens: number;
      readonly outputTokens: number;
    };

const chunk = z.looseObject({
  choices: z
    .array(
      z.looseObject({
        delta: z
          .looseObject({
            content: z.string().nullish(),
            reasoning_content: z.string().nullish(),
            tool_calls: z
              .array(
                z.looseObject({
                  index: z.int().min(0).default(0),
                  function: z
                    .looseObject({
                      name: z.string().nullish(),
                      arguments: z.string().nullish(),
                    })
                    .nullish(),
                }),
              )
              .nullish(),
          })
          .nullish(),
        finish_reason: z.string().nullish(),
      }),
    )
    .nullish(),
  usage: z
    .looseObject({
      prompt_tokens: z.number().default(0),
      completion_tokens: z.number().default(0),
    })
    .nullish(),
  error: z.looseObject({ message: z.string() }).optional(),
});

/**
 * Sends a body of POST /v1/chat/completions and returns its answer as it arrives. Throws a Failure with the gateway's sentence
 * for a rejected call and for one that fails midway, an {@link Unanswered} if the connection ends early, and the reason of
 * `signal` once that is aborted.
 */
export async function* streamChat(
  api: AdminApi,
  body: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): AsyncGenerator<ChatEvent> {
  const answer = await api.stream(
    "/v1/chat/completions",
    { ...body, stream: true, stream_options: { include_usage: true } },
    signal,
  );
  yield { kind: "started", callId: answer.callId };
  const parser = new SseParser();
  for await (const bytes of untilCut(api, answer.body, signal)) {
    for (const { data } of parser.push(bytes)) {
      if (data !== "[DONE]") {
        yield* eventsOf(data);
      }
    }
  }
}

async function* untilCut(
  { address }: AdminApi,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch {
    signal.throwIfAborted();
    throw new Unanswered(address, "the connection ended before the answer");
  }
}

function* eventsOf(data: string): Generator<ChatEvent> {
  const { choices, usage, error } = chunk.parse(JSON.parse(data));
  if (error !== undefined) {
    throw new Failure(error.message);
  }
  const [choice] = choices ?? [];
  const {
    content,
    reasoning_content: reasoning,
    tool_calls: tools,
  } = choice?.delta ?? {};
  if (reasoning) {
    yield { kind: "reasoning", text: reasoning };
  }
  if (content) {
    yield { kind: "text", text: content };
  }
  for (const { index, function: called } of tools ?? []) {
    const { name, arguments: text } = called ?? {};
    yield { kind: "tool", at: index, name: name ?? "", arguments: text ?? "" };
  }
  if (choice?.finish_reason) {
    yield { kind: "finished", reason: choice.finish_reason };
  }
  if (usage) {
    yield {
      kind: "usage",
      inputTokens: usage.prompt_tokens,
      outputTokens: usage.completion_tokens,
    };
  }
}
