import { appendFileSync } from "node:fs";
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { mediaAnswer, readForm, sendMedia } from "./media.ts";
import type { MockInstructions } from "./mock-instructions.ts";

export type MockMoment = "request" | "first_chunk" | "finished";

export interface MockProvider {
  readonly url: string;
  readonly requests: readonly MockRequest[];
  close(): Promise<void>;
}

interface MockRequest {
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
  /** Fails every call with this status. */
  readonly alwaysStatus?: number;
  /** How every whole chat ends; default: `stop`. */
  readonly finishReason?: string;
  /** Called at each moment of each call, before the call continues. */
  readonly onMoment?: (moment: MockMoment, id: string) => void;
}

/** Starts an OpenAI-style provider that follows the options in the prompt. */
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
    const body = await readBody(request);
    const mockRequest: MockRequest = {
      id: String(request.headers["x-request-id"]),
      path: request.url ?? "",
      headers: request.headers,
      body,
      finished: false,
      aborted: false,
    };
    requests.push(mockRequest);
    if (requests.length > 10_000) {
      requests.splice(0, 5_000);
    }
    response.on("close", () => (mockRequest.aborted = !mockRequest.finished));
    options.onMoment?.("request", mockRequest.id);
    const instructions = readInstructions(body);
    if (instructions.delayMs !== undefined) {
      await sleep(instructions.delayMs);
    }
    for (const [name, value] of Object.entries(instructions.headers ?? {})) {
      response.setHeader(name, value);
    }
    const finish = () => {
      if (options.record !== undefined) {
        appendFileSync(options.record, `${mockRequest.id}\n`);
      }
      mockRequest.finished = true;
    };
    const { unknownPath } = instructions;
    if (unknownPath !== undefined && mockRequest.path === unknownPath.path) {
      return void response.writeHead(unknownPath.status).end(unknownPath.text);
    }
    const status = instructions.status ?? options.alwaysStatus;
    if (status !== undefined) {
      return sendError(response, { ...instructions, status });
    }
    if (mockRequest.path.endsWith("/embeddings")) {
      return sendEmbedding(response, body, instructions, finish);
    }
    if (mockRequest.path.endsWith("/moderations")) {
      return sendJson(response, moderationOf(body), finish);
    }
    const media = mediaAnswer(mockRequest.path, body, instructions);
    if (media !== null) {
      return sendMedia(response, media, instructions, finish);
    }
    if (body["stream"] === true) {
      return sendStream(response, body, instructions, finish, mockRequest);
    }
    sendChat(response, body, instructions, finish, options.finishReason);
    options.onMoment?.("finished", mockRequest.id);
  }

  async function sendStream(
    response: ServerResponse,
    body: Record<string, unknown>,
    instructions: MockInstructions,
    finish: () => void,
    mockRequest: MockRequest,
  ): Promise<void> {
    const chunks = instructions.chunks ?? 4;
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
      if (instructions.cutAfter === at) {
        return void response.destroy();
      }
      response.write(
        `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta: { [instructions.field ?? "content"]: `word${at} ` } }] })}\n\n`,
      );
      if (at === 0) {
        options.onMoment?.("first_chunk", mockRequest.id);
      }
      if (instructions.chunkDelayMs !== undefined) {
        await sleep(instructions.chunkDelayMs);
      }
    }
    response.write(
      `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\n`,
    );
    if (instructions.usageDelayMs !== undefined) {
      await sleep(instructions.usageDelayMs);
    }
    if (response.destroyed) {
      return;
    }
    if (instructions.usage !== null) {
      response.write(
        `data: ${JSON.stringify({ ...head, choices: [], usage: instructions.usage ?? usageFor(chunks) })}\n\n`,
      );
    }
    finish();
    response.end("data: [DONE]\n\n");
    options.onMoment?.("finished", mockRequest.id);
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

function readInstructions(
  body: Readonly<Record<string, unknown>>,
): MockInstructions {
  const messages = body["messages"] as
    readonly { content?: unknown }[] | undefined;
  const text = String(
    messages?.at(-1)?.content ??
      body["input"] ??
      body["prompt"] ??
      body["query"] ??
      "",
  );
  const at = text.indexOf("[mock]");
  return at < 0
    ? {}
    : (JSON.parse(text.slice(at + "[mock]".length)) as MockInstructions);
}

function sendError(
  response: ServerResponse,
  instructions: MockInstructions,
): void {
  const headers: Record<string, string> = {
    "content-type": "application/json",
  };
  if (instructions.retryAfter !== undefined) {
    headers["retry-after"] = String(instructions.retryAfter);
  }
  response.writeHead(instructions.status ?? 500, headers);
  response.end(
    JSON.stringify({
      error: instructions.error ?? {
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
  instructions: MockInstructions,
  finish: () => void,
  finishReason = "stop",
): void {
  const message = {
    role: "assistant",
    content: instructions.text ?? "four words in here",
  };
  sendJson(
    response,
    {
      id: "chatcmpl-mock",
      object: "chat.completion",
      created: 1,
      model: body["model"],
      choices: [{ index: 0, message, finish_reason: finishReason }],
      usage:
        instructions.usage === null
          ? undefined
          : (instructions.usage ?? usageFor(4)),
    },
    finish,
  );
}

function sendEmbedding(
  response: ServerResponse,
  body: Record<string, unknown>,
  instructions: MockInstructions,
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
      usage: instructions.usage ?? {
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

/** A JSON body, or the fields of a form with the facts of its files. */
async function readBody(
  request: IncomingMessage,
): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) {
    chunks.push(chunk as Buffer);
  }
  const bytes = Buffer.concat(chunks);
  const contentType = String(request.headers["content-type"]);
  return contentType.startsWith("multipart/form-data")
    ? readForm(bytes, contentType)
    : (JSON.parse(bytes.toString("utf8")) as Record<string, unknown>);
}
