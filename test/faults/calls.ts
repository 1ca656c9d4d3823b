import { setTimeout as sleep } from "node:timers/promises";
import type { Account } from "./accounts.ts";
import type { Random } from "./random.ts";

/** What a client was told at the end of one call. */
export interface Told {
  readonly account: Account;
  /** Name of the error, `ok` for a whole answer, else how it ended on our side. */
  readonly end: string;
  readonly status: number | null;
  readonly message: string;
  readonly callId: string | null;
  /** Ms since the epoch, when the end was read. */
  readonly at: number;
}

export interface CallWishes {
  readonly stream: boolean;
  /** Output tokens, and chunks of a stream: at most 8. */
  readonly tokens: number;
  readonly delayMs: number;
  readonly chunkDelayMs: number;
  /** The client leaves after so many chunks of its stream; 0: once the headers are there; null: never. */
  readonly leaveAfter: number | null;
}

const PATIENCE_MS = 30_000;
const INPUT_TOKENS = 10;
const REFUSED_PAUSE_MS = 60;
const UNREACHABLE_PAUSE_MS = 200;
let counted = 0;

/** A call of the load at random: half of them streams, of one to eight tokens. */
export function randomWishes(random: Random, leaving = 0): CallWishes {
  const stream = random.chance(0.5);
  const tokens = random.whole(1, 8);
  return {
    stream,
    tokens,
    delayMs: random.whole(0, 40),
    chunkDelayMs: random.whole(0, 5),
    leaveAfter:
      stream && random.chance(leaving) ? random.whole(0, tokens) : null,
  };
}

/** One call; never throws. */
export async function call(
  url: string,
  account: Account,
  wishes: CallWishes,
): Promise<Told> {
  const { stream, tokens, delayMs, chunkDelayMs, leaveAfter } = wishes;
  const usage = {
    prompt_tokens: INPUT_TOKENS,
    completion_tokens: tokens,
    total_tokens: INPUT_TOKENS + tokens,
  };
  const mock = { delayMs, chunks: tokens, chunkDelayMs, usage };
  const aborter = new AbortController();
  const patience = setTimeout(() => aborter.abort("stuck"), PATIENCE_MS);
  let status: number | null = null;
  let callId: string | null = null;
  const told = (end: string, message = ""): Told => ({
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
            content: `Call number ${++counted} of all. [mock]${JSON.stringify(mock)}`,
          },
        ],
        ...account.fields,
      }),
    });
    status = answer.status;
    callId = answer.headers.get("x-hearth-call-id");
    if (status !== 200) {
      return refused(await answer.text(), told);
    }
    if (!stream) {
      return told(wholeJson(await answer.text()) ? "ok" : "cut");
    }
    return told(await readStream(answer, leaveAfter, aborter));
  } catch (error) {
    if (aborter.signal.reason === "stuck") {
      return told("stuck");
    }
    return told("unreachable", String((error as Error).cause ?? error));
  } finally {
    clearTimeout(patience);
  }
}

function refused(
  text: string,
  told: (end: string, message: string) => Told,
): Told {
  try {
    const { error } = JSON.parse(text) as {
      error: { type: string; message: string };
    };
    return told(error.type, error.message);
  } catch {
    return told("not_json", text);
  }
}

function wholeJson(text: string): boolean {
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
  /** Which accounts pay from now on. */
  use(accounts: readonly Account[]): void;
  /** Resolves when no call is under way; none begins until `resume`. */
  pause(): Promise<void>;
  resume(): void;
  /** Ends when the calls under way have ended. */
  stop(): Promise<void>;
}

export interface LoadOptions {
  readonly urls: readonly string[];
  readonly accounts: readonly Account[];
  readonly random: Random;
  readonly parallel: number;
  /** Between two calls of one client, at most. */
  readonly pauseMs: number;
  /** Share of the streams that their client leaves. */
  readonly leaving?: number;
  readonly told: (told: Told) => void;
}

/** Clients that call one after the other until they are stopped. */
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
      const told = await call(
        random.pick(urls),
        random.pick(accounts),
        randomWishes(random, leaving),
      );
      options.told(told);
      const pause = random.whole(0, pauseMs);
      if (told.end === "unreachable") {
        await sleep(UNREACHABLE_PAUSE_MS);
      }
      await sleep(told.end === "ok" ? pause : pause + REFUSED_PAUSE_MS);
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
export function endsOf(told: readonly Told[]): string {
  const counts = new Map<string, number>();
  for (const { end } of told) {
    counts.set(end, (counts.get(end) ?? 0) + 1);
  }
  return [...counts]
    .sort(([, one], [, other]) => other - one)
    .map(([end, count]) => `${count} ${end}`)
    .join(", ");
}
