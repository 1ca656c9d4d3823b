import { once } from "node:events";
import {
  createServer,
  request,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { listen } from "../../test/servers/ports.ts";

/** The provider's behaviour by model name. */
const PROVIDERS: Readonly<
  Record<string, (response: ServerResponse) => Promise<void>>
> = {
  async long(response) {
    for (let at = 0; at < 40; at++) {
      await write(response, LONG);
    }
    response.end("data: [DONE]\n\n");
  },
  async endless(response) {
    while (!response.destroyed) {
      await write(response, LONG);
    }
  },
  async late_end(response) {
    response.write(chunk("word") + "data: [DONE]\n\n");
    await sleep(20);
    response.end();
  },
  async broken(response) {
    response.write(chunk("word"));
    await sleep(20);
    // The error and the end of the body in one write.
    response.end(
      `data: ${JSON.stringify({ error: { message: "It broke down." } })}\n\n`,
    );
  },
  async silent(response) {
    response.write(chunk("thinking"));
    await sleep(3_000);
    response.end(chunk("done") + "data: [DONE]\n\n");
  },
  async held(response) {
    response.write(EMPTY);
    await release.promise;
    response.write(chunk("word"));
    await release.promise;
    response.end(chunk("done") + "data: [DONE]\n\n");
  },
  async whole(response) {
    const message = { role: "assistant", content: "word ".repeat(4_000_000) };
    response.end(
      JSON.stringify({
        choices: [{ index: 0, message, finish_reason: "stop" }],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }),
    );
  },
};

const chunk = (content: string) =>
  `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content } }] })}\n\n`;

const EMPTY = chunk("");
let release = Promise.withResolvers<void>();

const LONG = chunk("word ".repeat(13_000));

async function write(response: ServerResponse, text: string): Promise<void> {
  response.write(text);
  while (response.writableNeedDrain && !response.destroyed) {
    await sleep(5);
  }
}

async function serve(
  question: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  let text = "";
  for await (const part of question) {
    text += String(part);
  }
  const { model, stream } = JSON.parse(text) as {
    model: string;
    stream: boolean;
  };
  const type = stream ? "text/event-stream" : "application/json";
  response.writeHead(200, { "content-type": type });
  await PROVIDERS[model.replace(/^o3-/, "")]?.(response);
}

const provider = createServer((question, response) => {
  serve(question, response).catch(() => response.destroy());
});
let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let gateway: TestGateway;
let key: string;

beforeAll(async () => {
  database = await throwAwayDatabase();
  const port = await listen(provider);
  const url = `http://127.0.0.1:${port}/v1`;
  const model = (alias: string, name: string, more = "") =>
    `  - { model_name: ${alias}, provider_params: { model: openai/${name}, api_base: "${url}", api_key: x${more} } }\n`;
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: url,
    yaml: `model_list:
${model("long", "long")}${model("endless", "endless")}${model("late_end", "late_end")}${model("broken", "broken")}${model("silent", "silent")}${model("patient", "silent", ", idle_timeout: never")}${model("reasoning", "o3-silent")}${model("impatient", "o3-silent", ", idle_timeout: 300ms")}${model("whole", "whole")}${model("held", "o3-held")}
proxy_settings: { idle_timeout: 300ms }
`,
  });
  key = await gateway.createKey({});
});

afterAll(async () => {
  await gateway?.stop();
  provider.closeAllConnections();
  provider.close();
  await database?.drop();
});

/** A call whose answer is read on demand. */
function answerTo(model: string, stream: boolean): Promise<IncomingMessage> {
  return post("/v1/chat/completions", {
    model,
    stream,
    messages: [{ role: "user", content: "hello" }],
  });
}

async function post(path: string, body: object): Promise<IncomingMessage> {
  const call = request(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    agent: false,
  });
  call.end(JSON.stringify(body));
  const [answer] = (await once(call, "response")) as [IncomingMessage];
  return answer;
}

const streamed = (model: string) => answerTo(model, true);

async function textOf(answer: IncomingMessage): Promise<string> {
  let text = "";
  for await (const part of answer) {
    text += String(part);
  }
  return text;
}

test("a stream that waits for its client again and again leaves no listeners behind", async () => {
  const warnings: Error[] = [];
  const warned = (warning: Error) => warnings.push(warning);
  process.on("warning", warned);
  try {
    const text = await textOf(await streamed("long"));
    expect(text.length).toBeGreaterThanOrEqual(40 * LONG.length);
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    expect(warnings).toEqual([]);
  } finally {
    process.off("warning", warned);
  }
});

test("the connection of a stream serves the next one, also when the provider ends it after its last event", async () => {
  let connections = 0;
  const connected = () => void connections++;
  provider.on("connection", connected);
  try {
    for (let at = 0; at < 3; at++) {
      const ended = new Promise<void>((resolve) =>
        provider.once("request", (_question, response) =>
          response.once("close", resolve),
        ),
      );
      const text = await textOf(await streamed("late_end"));
      expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
      await ended;
    }
    expect(connections).toBeLessThanOrEqual(1);
  } finally {
    provider.off("connection", connected);
  }
});

test("an error that ends a stream together with its body is passed on", async () => {
  for (let at = 0; at < 3; at++) {
    expect(await textOf(await streamed("broken"))).toContain("It broke down.");
  }
});

test("a client that stops reading is disconnected after the idle timeout, and its provider is stopped", async () => {
  const stopped = new Promise<void>((resolve) =>
    provider.once("request", (_question, response) =>
      response.once("close", resolve),
    ),
  );
  const answer = await streamed("endless");
  answer.on("error", () => undefined);
  answer.pause();
  await stopped;
  await expect.poll(() => gateway.running.gateway.activeCalls.count()).toBe(0);
  answer.destroy();
});

test("a client that stops reading a whole answer is disconnected, too", async () => {
  const connected = once(gateway.running.listener, "connection");
  const answer = await answerTo("whole", false);
  answer.on("error", () => undefined);
  answer.pause();
  const [connection] = (await connected) as [Socket];
  await once(connection, "close");
  answer.destroy();
});

test.each(["patient", "reasoning"])(
  "a stream that is silent for longer than the idle timeout is not cut off: %s",
  async (model) => {
    const text = await textOf(await streamed(model));
    expect(text).toContain('"done"');
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
  },
);

test.each(["silent", "impatient"])(
  "a provider that sends nothing for the idle timeout is disconnected: %s",
  async (model) => {
    const text = await textOf(await streamed(model));
    expect(text).toContain("thinking");
    expect(text).toContain('"upstream_error"');
    expect(text).not.toContain('"done"');
  },
);

test("the client of a silent model receives comments, before the first content and in the middle", async () => {
  release = Promise.withResolvers();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const ticks = setInterval(() => void vi.advanceTimersByTime(5_000), 50);
  try {
    const answer = await streamed("held");
    const reader = answer[Symbol.asyncIterator]();
    const next = async () => String((await reader.next()).value);
    expect(await next()).toBe(": waiting for held\n\n");
    expect(await next()).toBe(": waiting for held\n\n");
    const first = release;
    release = Promise.withResolvers();
    first.resolve();
    let text = "";
    while (!text.includes("word")) {
      text = await next();
    }
    expect(await next()).toBe(": waiting for held\n\n");
    expect(await next()).toBe(": waiting for held\n\n");
    release.resolve();
    while (!text.includes("[DONE]")) {
      text = await next();
    }
  } finally {
    clearInterval(ticks);
    vi.useRealTimers();
  }
});

test("a client of Gemini's API receives the headers only while its model is silent", async () => {
  release = Promise.withResolvers();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const ticks = setInterval(() => void vi.advanceTimersByTime(5_000), 50);
  try {
    const answer = await post(
      "/v1beta/models/held:streamGenerateContent?alt=sse",
      { contents: [{ role: "user", parts: [{ text: "hello" }] }] },
    );
    expect(answer.statusCode).toBe(200);
    release.resolve();
    const text = await textOf(answer);
    expect(text).toContain('"word"');
    expect(text).not.toContain("waiting");
  } finally {
    clearInterval(ticks);
    vi.useRealTimers();
  }
});
