import { setTimeout as sleep } from "node:timers/promises";
import { containerLog } from "../../infra/engine.ts";
import { sessionOf } from "./day-two.ts";
import type { Stand } from "./stand.ts";

export interface Load {
  /** Stops calling and waits for what runs. */
  stop(): Promise<LoadReport>;
}

export interface LoadReport {
  /** When the first call began. */
  readonly since: Date;
  readonly calls: number;
  readonly streams: number;
  readonly failures: readonly string[];
}

/** Calls a model through the given addresses in turn, `perSecond` times; every fifth call is a stream of about a second and a half. */
export function callSteadily(options: {
  readonly baseUrls: readonly string[];
  readonly key: string;
  readonly perSecond: number;
}): Load {
  const since = new Date();
  const failures: string[] = [];
  const running = new Set<Promise<void>>();
  let calls = 0;
  let streams = 0;
  let stopped = false;

  async function call(baseUrl: string, stream: boolean): Promise<void> {
    const wishes = stream
      ? `[mock]${JSON.stringify({ chunks: 15, chunkDelayMs: 100 })}`
      : `[mock]${JSON.stringify({ text: "hello" })}`;
    try {
      const answer = await fetch(`${baseUrl}/v1/chat/completions`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${options.key}`,
          "content-type": "application/json",
        },
        body: JSON.stringify({
          model: "mock",
          stream,
          max_tokens: 20,
          // Otherwise the cache answers.
          messages: [{ role: "user", content: `${calls} ${wishes}` }],
        }),
        signal: AbortSignal.timeout(60_000),
      });
      const text = await answer.text();
      if (answer.status !== 200)
        failures.push(`${baseUrl}: ${answer.status} ${text.slice(0, 200)}`);
      else if (stream && !text.includes("data: [DONE]"))
        failures.push(`${baseUrl}: the stream was cut: …${text.slice(-200)}`);
    } catch (error) {
      const { message, cause } = error as Error;
      failures.push(`${baseUrl}: ${message} ${String(cause ?? "")}`);
    }
  }

  const loop = (async () => {
    while (!stopped) {
      const stream = calls % 5 === 4;
      const baseUrl = options.baseUrls[calls % options.baseUrls.length] ?? "";
      calls += 1;
      if (stream) streams += 1;
      const one = call(baseUrl, stream).finally(() => running.delete(one));
      running.add(one);
      await sleep(1000 / options.perSecond);
    }
  })();
  return {
    async stop() {
      stopped = true;
      await loop;
      await Promise.all(running);
      return { since, calls, streams, failures };
    },
  };
}

/**
 * What failed, without the streams that an edge cut by itself. Debian's Caddy 2.6, which stands in for 2.10, on a burning CPU now
 * and then closes its own connection to a gateway in the midst of an answer, and logs it so; a gateway that closed, or was closed,
 * is another line. At most as many cuts are left out as the edges own up to, and they are told.
 */
export async function failedCalls(
  stand: Stand,
  { since, failures }: LoadReport,
): Promise<readonly string[]> {
  let owned = 0;
  for (const host of ["a", "b"] as const)
    owned += await cutByEdge(stand, host, since);
  const left = failures.filter((failure) => {
    if (owned === 0 || !failure.includes("the stream was cut")) return true;
    owned -= 1;
    return false;
  });
  if (left.length < failures.length)
    process.stdout.write(
      `  ${failures.length - left.length} streams cut by the edge that stands in for Caddy 2.10\n`,
    );
  return left;
}

async function cutByEdge(
  stand: Stand,
  host: "a" | "b",
  since: Date,
): Promise<number> {
  const { engines } = await sessionOf(stand);
  const log = await containerLog(engines[host], "hearth-edge", 100_000);
  return log
    .split("\n")
    .filter(
      (line) =>
        line.includes("aborting with incomplete response") &&
        line.includes("use of closed network connection") &&
        Number(/"ts":([\d.]+)/.exec(line)?.[1]) * 1000 >= since.getTime(),
    ).length;
}
