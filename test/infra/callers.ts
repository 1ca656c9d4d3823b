import { setTimeout as sleep } from "node:timers/promises";

export interface Load {
  /** Stops calling and waits for what runs. */
  stop(): Promise<LoadReport>;
}

export interface LoadReport {
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
  const failures: string[] = [];
  const running = new Set<Promise<void>>();
  let calls = 0;
  let streams = 0;
  let stopped = false;

  async function call(baseUrl: string, stream: boolean): Promise<void> {
    const wishes = stream
      ? `[mock]${JSON.stringify({ chunks: 15, chunkDelayMs: 100 })}`
      : `[mock]${JSON.stringify({ text: "hello" })}`;
    const at = new Date().toISOString().slice(11, 23);
    const failed = (what: string) => failures.push(`${at} ${baseUrl}: ${what}`);
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
        // The images are put together in this process too: on a busy machine that once held up callers and provider for a minute.
        signal: AbortSignal.timeout(180_000),
      });
      const text = await answer.text();
      if (answer.status !== 200)
        failed(`${answer.status} ${text.slice(0, 200)}`);
      else if (stream && !text.includes("data: [DONE]"))
        failed(`the stream was cut: …${text.slice(-200)}`);
    } catch (error) {
      const { message, cause } = error as Error;
      failed(`${message} ${String(cause ?? "")}`);
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
      return { calls, streams, failures };
    },
  };
}
