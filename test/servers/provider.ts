import { appendFileSync } from "node:fs";
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** What a test asks of one answer, as JSON after `[mock]` in the last message (or in the embedding's input). */
export interface MockWishes {
  readonly status?: number;
  readonly error?: unknown;
  readonly retryAfter?: number;
  readonly delayMs?: number;
  readonly chunks?: number;
  readonly chunkDelayMs?: number;
  /** Chunks after which the connection is cut. */
  readonly cutAfter?: number;
  /** Between a stream's `finish_reason` and its usage. */
  readonly usageDelayMs?: number;
  readonly usage?: Readonly<Record<string, unknown>> | null;
  readonly text?: string;
}

export type MockMoment = "request" | "first_chunk" | "finished";

export interface MockProvider {
  readonly url: string;
  readonly requests: readonly MockRequest[];
  close(): Promise<void>;
}

export interface MockRequest {
  /** The gateway's call id. */
  readonly id: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Readonly<Record<string, unknown>>;
  finished: boolean;
  aborted: boolean;
}

export interface MockOptions {
  readonly host?: string;
  /** A free one by default. */
  readonly port?: number;
  /** Finished ids are appended here before the last byte is sent. */
  readonly record?: string;
  /** Every call fails with this status. */
  readonly alwaysStatus?: number;
  /** Called at each moment of each call; the call waits for it. */
  readonly onMoment?: (moment: MockMoment, id: string) => void;
}

/** An OpenAI-style provider that does what the prompt says. */
export async function startMockProvider(
  options: MockOptions = {},
): Promise<MockProvider> {
  const requests: MockRequest[] = [];
  const server: Server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });

  async function serve(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    if (request.method === "GET") {
      return void response.end(JSON.stringify({ object: "list", data: [] }));
    }
    const body = JSON.parse(await readAll(request)) as Record<string, unknown>;
    const seen: MockRequest = {
      id: String(request.headers["x-request-id"]),
      path: request.url ?? "",
      headers: request.headers,
      body,
      finished: false,
      aborted: false,
    };
    requests.push(seen);
    if (requests.length > 10_000) {
      requests.splice(0, 5_000);
    }
    response.on("close", () => (seen.aborted = !seen.finished));
    options.onMoment?.("request", seen.id);
    const wishes = wishesOf(body);
    if (wishes.delayMs !== undefined) {
      await sleep(wishes.delayMs);
    }
    const finish = () => {
      if (options.record !== undefined) {
        appendFileSync(options.record, `${seen.id}\n`);
      }
      seen.finished = true;
    };
    const status = wishes.status ?? options.alwaysStatus;
    if (status !== undefined) {
      return sendError(response, { ...wishes, status });
    }
    if (seen.path.endsWith("/embeddings")) {
      return sendEmbedding(response, body, wishes, finish);
    }
    if (seen.path.endsWith("/moderations")) {
      return sendJson(response, moderationOf(body), finish);
    }
    if (seen.path.endsWith("/images/generations")) {
      return sendJson(response, imagesOf(body), finish);
    }
    if (body["stream"] === true) {
      return sendStream(response, body, wishes, finish, seen);
    }
    sendChat(response, body, wishes, finish);
    options.onMoment?.("finished", seen.id);
  }

  async function sendStream(
    response: ServerResponse,
    body: Record<string, unknown>,
    wishes: MockWishes,
    finish: () => void,
    seen: MockRequest,
  ): Promise<void> {
    const chunks = wishes.chunks ?? 4;
    const head = {
      id: "chatcmpl-mock",
      object: "chat.completion.chunk",
      created: 1,
      model: body["model"],
    };
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (let at = 0; at < chunks; at++) {
      if (response.destroyed) {
        return;
      }
      if (wishes.cutAfter === at) {
        return void response.destroy();
      }
      response.write(
        `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta: { content: `word${at} ` } }] })}\n\n`,
      );
      if (at === 0) {
        options.onMoment?.("first_chunk", seen.id);
      }
      if (wishes.chunkDelayMs !== undefined) {
        await sleep(wishes.chunkDelayMs);
      }
    }
    response.write(
      `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\n`,
    );
    if (wishes.usageDelayMs !== undefined) {
      await sleep(wishes.usageDelayMs);
    }
    if (response.destroyed) {
      return;
    }
    if (wishes.usage !== null) {
      response.write(
        `data: ${JSON.stringify({ ...head, choices: [], usage: wishes.usage ?? usageFor(chunks) })}\n\n`,
      );
    }
    finish();
    response.end("data: [DONE]\n\n");
    options.onMoment?.("finished", seen.id);
  }

  const host = options.host ?? "127.0.0.1";
  await new Promise<void>((resolve) =>
    server.listen(options.port ?? 0, host, resolve),
  );
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}/v1`,
    requests,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const PROMPT_TOKENS = 10;

function usageFor(outputTokens: number) {
  return {
    prompt_tokens: PROMPT_TOKENS,
    completion_tokens: outputTokens,
    total_tokens: PROMPT_TOKENS + outputTokens,
  };
}

function wishesOf(body: Readonly<Record<string, unknown>>): MockWishes {
  const messages = body["messages"] as
    readonly { content?: unknown }[] | undefined;
  const text = String(
    messages?.at(-1)?.content ?? body["input"] ?? body["prompt"] ?? "",
  );
  const at = text.indexOf("[mock]");
  return at < 0
    ? {}
    : (JSON.parse(text.slice(at + "[mock]".length)) as MockWishes);
}

function sendError(response: ServerResponse, wishes: MockWishes): void {
  const headers: Record<string, string> = {
    "content-type": "application/json",
  };
  if (wishes.retryAfter !== undefined) {
    headers["retry-after"] = String(wishes.retryAfter);
  }
  response.writeHead(wishes.status ?? 500, headers);
  response.end(
    JSON.stringify({
      error: wishes.error ?? {
        message: "the mock was asked to fail",
        type: "mock",
      },
    }),
  );
}

function sendJson(
  response: ServerResponse,
  answer: unknown,
  finish: () => void,
): void {
  finish();
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(answer));
}

function sendChat(
  response: ServerResponse,
  body: Record<string, unknown>,
  wishes: MockWishes,
  finish: () => void,
): void {
  const message = {
    role: "assistant",
    content: wishes.text ?? "four words in here",
  };
  sendJson(
    response,
    {
      id: "chatcmpl-mock",
      object: "chat.completion",
      created: 1,
      model: body["model"],
      choices: [{ index: 0, message, finish_reason: "stop" }],
      usage: wishes.usage === null ? undefined : (wishes.usage ?? usageFor(4)),
    },
    finish,
  );
}

function sendEmbedding(
  response: ServerResponse,
  body: Record<string, unknown>,
  wishes: MockWishes,
  finish: () => void,
): void {
  sendJson(
    response,
    {
      object: "list",
      model: body["model"],
      data: [body["input"]].flat().map((input, index) => ({
        object: "embedding",
        index,
        embedding: [String(input).length, 0.2, 0.3],
      })),
      usage: wishes.usage ?? {
        prompt_tokens: PROMPT_TOKENS,
        total_tokens: PROMPT_TOKENS,
      },
    },
    finish,
  );
}

function moderationOf(body: Readonly<Record<string, unknown>>) {
  return {
    id: "modr-mock",
    model: body["model"],
    results: [body["input"]].flat().map(() => ({
      flagged: false,
      categories: { violence: false },
      category_scores: { violence: 0.001 },
    })),
  };
}

function imagesOf({ n }: Readonly<Record<string, unknown>>) {
  return {
    created: 1,
    data: Array.from({ length: Number(n ?? 1) }, () => ({
      b64_json: "iVBORw0KGgo=",
    })),
  };
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) {
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
}
