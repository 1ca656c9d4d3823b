import { setTimeout as sleep } from "node:timers/promises";
import type { Account } from "./accounts.ts";
import type { Random } from "./random.ts";

/** What a client received for one call. */
export interface Received {
  readonly account: Account;
  /** `ok` for a complete response, the name of the error, or how the client ended the call. */
  readonly end: string;
  readonly status: number | null;
  readonly message: string;
  readonly callId: string | null;
  /** When the end was read, in ms since 1970. */
  readonly at: number;
}

interface CallOptions {
  readonly stream: boolean;
  /** Output tokens, and chunks of a stream: at most 8. */
  readonly tokens: number;
  readonly delayMs: number;
  readonly chunkDelayMs: number;
  /** The client disconnects after this many chunks of its stream; 0: after the headers; null: never. */
  readonly leaveAfter: number | null;
}

const TIMEOUT_MS = 30_000;
const INPUT_TOKENS = 10;
const ERROR_PAUSE_MS = 60;
const UNREACHABLE_PAUSE_MS = 200;
let calls = 0;

/** A random call: half are streams, of one to eight tokens. */
export function randomCall(random: Random, leaving = 0): CallOptions {
  const stream = random.chance(0.5);
  const tokens = random.integer(1, 8);
  return {
    stream,
    tokens,
    delayMs: random.integer(0, 40),
    chunkDelayMs: random.integer(0, 5),
    leaveAfter:
      stream && random.chance(leaving) ? random.integer(0, tokens) : null,
  };
}

/** Makes one call; never throws. */
export async function call(
  url: string,
  account: Account,
  options: CallOptions,
): Promise<Received> {
  const { stream, tokens, delayMs, chunkDelayMs, leaveAfter } = options;
  const usage = {
    prompt_tokens: INPUT_TOKENS,
    completion_tokens: tokens,
    total_tokens: INPUT_TOKENS + tokens,
  };
  const mock = { delayMs, chunks: tokens, chunkDelayMs, usage };
  const aborter = new AbortController();
  const timeout = setTimeout(() => aborter.abort("stuck"), TIMEOUT_MS);
  let status: number | null = null;
  let callId: string | null = null;
  const result = (end: string, message = ""): Received => ({
    account,
    end,
    status,
    message,
    callId,
    at: Date.now(),
  });
  try {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      signal: aborter.signal,
      headers: {
        authorization: `Bearer ${account.key}`,
        "content-type": "application/json",
      },
      body: JSON.stringify({
        model: "mock",
        stream,
        max_tokens: tokens,
        messages: [
          {
            role: "user",
            content: `Call number ${++calls} of all. [mock]${JSON.stringify(mock)}`,
          },
        ],
        ...account.fields,
      }),
    });
    status = answer.status;
    callId = answer.headers.get("x-hearth-call-id");
    if (status !== 200) {
      return readError(await answer.text(), result);
    }
    if (!stream) {
      return result(isJson(await answer.text()) ? "ok" : "cut");
    }
    return result(await readStream(answer, leaveAfter, aborter));
  } catch (error) {
    if (aborter.signal.reason === "stuck") {
      return result("stuck");
    }
    return result("unreachable", String((error as Error).cause ?? error));
  } finally {
    clearTimeout(timeout);
  }
}

function readError(
  text: string,
  result: (end: string, message: string) => Received,
): Received {
  try {
    const { error } = JSON.parse(text) as {
      error: { type: string; message: string };
    };
    return result(error.type, error.message);
  } catch {
    return result("not_json", text);
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

async function readStream(
  answer: Response,
  leaveAfter: number | null,
  aborter: AbortController,
): Promise<string> {
  if (leaveAfter === 0) {
    aborter.abort("left");
    return "left";
  }
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const piece of answer.body ?? []) {
      text += decoder.decode(piece, { stream: true });
      const chunks = text.split("\n\n").length - 1;
      if (leaveAfter !== null && chunks >= leaveAfter) {
        aborter.abort("left");
      }
    }
  } catch (error) {
    if (aborter.signal.reason === "stuck") {
      throw error;
    }
    return aborter.signal.reason === "left" ? "left" : "cut";
  }
  if (text.includes('"error"')) {
    return "stream_error";
  }
  return text.trimEnd().endsWith("data: [DONE]") ? "ok" : "cut";
}

export interface Load {
  /** Uses these accounts from now on. */
  use(accounts: readonly Account[]): void;
  /** Resolves when no call is in flight; no call starts until `resume`. */
  pause(): Promise<void>;
  resume(): void;
  /** Resolves when the calls in flight have ended. */
  stop(): Promise<void>;
}

interface LoadOptions {
  readonly urls: readonly string[];
  readonly accounts: readonly Account[];
  readonly random: Random;
  readonly parallel: number;
  /** The longest pause between two calls of one client. */
  readonly pauseMs: number;
  /** Share of the streams from which the client disconnects. */
  readonly leaving?: number;
  readonly onReceived: (received: Received) => void;
}

/** Starts clients that each make one call after the other until they are stopped. */
export function startLoad(options: LoadOptions): Load {
  const { urls, random, parallel, pauseMs, leaving = 0 } = options;
  let { accounts } = options;
  let stopped = false;
  let gate: PromiseWithResolvers<void> | null = null;
  let idle = 0;

  async function client(): Promise<void> {
    while (!stopped) {
      if (gate !== null) {
        idle++;
        await gate.promise;
        idle--;
        continue;
      }
      const received = await call(
        random.pick(urls),
        random.pick(accounts),
        randomCall(random, leaving),
      );
      options.onReceived(received);
      const pause = random.integer(0, pauseMs);
      if (received.end === "unreachable") {
        await sleep(UNREACHABLE_PAUSE_MS);
      }
      await sleep(received.end === "ok" ? pause : pause + ERROR_PAUSE_MS);
    }
  }

  const clients = Array.from({ length: parallel }, client);
  function resume(): void {
    gate?.resolve();
    gate = null;
  }
  return {
    use(next) {
      accounts = next;
    },
    async pause() {
      gate ??= Promise.withResolvers<void>();
      while (idle < parallel) {
        await sleep(10);
      }
    },
    resume,
    async stop() {
      stopped = true;
      resume();
      await Promise.all(clients);
    },
  };
}

/** "12 ok, 3 budget_held". */
export function endsOf(received: readonly Received[]): string {
  const counts = new Map<string, number>();
  for (const { end } of received) {
    counts.set(end, (counts.get(end) ?? 0) + 1);
  }
  return [...counts]
    .sort(([, one], [, other]) => other - one)
    .map(([end, count]) => `${count} ${end}`)
    .join(", ");
}
