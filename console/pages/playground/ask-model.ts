import { inWords } from "../../../core/duration.ts";
import { Failure } from "../../../core/failure.ts";
import { capital, grouped } from "../../../core/words.ts";
import type { AdminApi } from "../../../supervisor/gateway/admin-api.ts";
import { streamChat } from "../../../supervisor/gateway/stream-chat.ts";

/** A piece of an answer that the browser shows at once. */
export type Piece =
  | { readonly kind: "started"; readonly callId: string }
  | { readonly kind: "text" | "reasoning"; readonly text: string };

interface ToolCall {
  readonly name: string;
  /** JSON, if the model wrote it correctly. */
  readonly arguments: string;
}

/** A whole answer, or as much of it as arrived. */
export interface Answer {
  readonly model: string;
  /** null: the gateway rejected the call, or did not answer. */
  readonly callId: string | null;
  readonly text: string;
  readonly reasoning: string;
  readonly tools: readonly ToolCall[];
  /** As the model names it: stop, length, tool_calls; null: the answer did not end. */
  readonly finish: string | null;
  readonly usage: { readonly input: number; readonly output: number } | null;
  /** From the request; null: nothing arrived. */
  readonly firstTokenMs: number | null;
  readonly totalMs: number;
  /** The gateway's sentence. */
  readonly error: string | null;
}

export const MAX_ANSWER_MS = 600_000;
export const MAX_ANSWER_CHARACTERS = 1_000_000;

/** Asks one model; ends with the answer, also one that fails. Throws only the reason of `left`, once that is aborted. */
export async function* askModel(
  api: AdminApi,
  body: Readonly<Record<string, unknown>> & { readonly model: string },
  left: AbortSignal,
  maxMs = MAX_ANSWER_MS,
): AsyncGenerator<Piece, Answer> {
  const collected = new Collected(performance.now());
  const late = AbortSignal.timeout(maxMs);
  let error: string | null = null;
  try {
    const signal = AbortSignal.any([left, late]);
    for await (const event of streamChat(api, body, signal)) {
      switch (event.kind) {
        case "started":
          collected.callId = event.callId;
          yield event;
          break;
        case "text":
        case "reasoning":
          collected.arrived(event.text);
          collected[event.kind] += event.text;
          yield event;
          break;
        case "tool":
          collected.arrived(event.arguments);
          collected.addTool(event);
          break;
        case "finished":
          collected.finish = event.reason;
          break;
        case "usage":
          collected.usage = {
            input: event.inputTokens,
            output: event.outputTokens,
          };
      }
      if (collected.characters > MAX_ANSWER_CHARACTERS) {
        error = `Stopped after ${grouped(MAX_ANSWER_CHARACTERS)} characters, the maximum of the playground.`;
        break;
      }
    }
  } catch (thrown) {
    left.throwIfAborted();
    error = late.aborted
      ? `Stopped after ${inWords(maxMs)}, the maximum of the playground.`
      : sentenceOf(thrown);
  }
  return collected.answer(body.model, error);
}

/** The answer without its pieces. */
export async function wholeAnswer(
  pieces: AsyncGenerator<Piece, Answer>,
): Promise<Answer> {
  let next = await pieces.next();
  while (next.done !== true) {
    next = await pieces.next();
  }
  return next.value;
}

/** The sentence of a Failure, for people; throws anything else. */
export function sentenceOf(thrown: unknown): string {
  if (!(thrown instanceof Failure)) {
    throw thrown;
  }
  return capital(thrown.sentences.join(" "));
}

/** What of an answer has arrived. */
class Collected {
  readonly #startedAt: number;
  readonly #tools = new Map<number, ToolCall>();
  #firstAt: number | null = null;
  callId: string | null = null;
  text = "";
  reasoning = "";
  finish: string | null = null;
  usage: Answer["usage"] = null;
  characters = 0;

  constructor(startedAt: number) {
    this.#startedAt = startedAt;
  }

  arrived(text: string): void {
    this.#firstAt ??= performance.now();
    this.characters += text.length;
  }

  addTool(part: ToolCall & { readonly at: number }): void {
    const before = this.#tools.get(part.at);
    this.#tools.set(part.at, {
      name: `${before?.name ?? ""}${part.name}`,
      arguments: `${before?.arguments ?? ""}${part.arguments}`,
    });
  }

  answer(model: string, error: string | null): Answer {
    const { callId, text, reasoning, finish, usage } = this;
    return {
      model,
      callId,
      text,
      reasoning,
      tools: [...this.#tools.values()],
      finish,
      usage,
      firstTokenMs:
        this.#firstAt === null ? null : this.#firstAt - this.#startedAt,
      totalMs: performance.now() - this.#startedAt,
      error,
    };
  }
}
