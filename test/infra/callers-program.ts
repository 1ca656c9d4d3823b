// Calls gateways steadily, in a separate process: assembling images blocks the process of the scenarios for seconds. The
// argument is a `Calling` as JSON; at the end of its input it waits for pending calls, prints a `LoadReport` as JSON, and exits.
import { setTimeout as sleep } from "node:timers/promises";
import type { Calling, LoadReport } from "./callers.ts";

/** Timeout of a call; what users would not wait for. Shorter durations depend on the machine. */
const TIMEOUT_MS = 60_000;

const { baseUrls, key, perSecond } = JSON.parse(
  process.argv[2] ?? "",
) as Calling;
const failures: string[] = [];
const longestMs = { answer: 0, firstByte: 0, stream: 0 };
const running = new Set<Promise<void>>();
let calls = 0;
let streams = 0;
let stopped = false;

async function call(baseUrl: string, stream: boolean): Promise<void> {
  const options = stream
    ? `[mock]${JSON.stringify({ chunks: 15, chunkDelayMs: 100 })}`
    : `[mock]${JSON.stringify({ text: "hello" })}`;
  const at = new Date().toISOString().slice(11, 23);
  const since = performance.now();
  const failed = (what: string) => failures.push(`${at} ${baseUrl}: ${what}`);
  const waited = (kind: keyof typeof longestMs) => {
    longestMs[kind] = Math.max(
      longestMs[kind],
      Math.round(performance.now() - since),
    );
  };
  try {
    const answer = await fetch(`${baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
      },
      body: JSON.stringify({
        model: "mock",
        stream,
        max_tokens: 20,
        // Otherwise the cache answers.
        messages: [{ role: "user", content: `${calls} ${options}` }],
      }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    let text = "";
    for await (const piece of answer.body?.pipeThrough(
      new TextDecoderStream(),
    ) ?? []) {
      if (stream && text === "") {
        waited("firstByte");
      }
      text += piece;
    }
    if (answer.status !== 200) {
      failed(`${answer.status} ${text.slice(0, 200)}`);
    } else if (stream && !text.includes("data: [DONE]")) {
      failed(`the stream was cut: …${text.slice(-200)}`);
    }
  } catch (error) {
    const { message, cause } = error as Error;
    failed(`${message} ${String(cause ?? "")}`);
  }
  waited(stream ? "stream" : "answer");
}

process.stdin.on("end", () => (stopped = true)).resume();
while (!stopped) {
  const stream = calls % 5 === 4;
  const baseUrl = baseUrls[calls % baseUrls.length] ?? "";
  calls += 1;
  if (stream) {
    streams += 1;
  }
  const one = call(baseUrl, stream).finally(() => running.delete(one));
  running.add(one);
  await sleep(1000 / perSecond);
}
await Promise.all(running);
// The scenarios have ended when nothing reads the output.
process.stdout.on("error", () => undefined);
const report: LoadReport = { calls, streams, failures, longestMs };
process.stdout.write(JSON.stringify(report));
