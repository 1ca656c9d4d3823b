import {
  createServer,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { anthropicMessages } from "../clients/formats/anthropic.ts";
import {
  listOf,
  recordOf,
  sendJson,
  sendRefusal,
  type Json,
  type ProviderFormat,
} from "../clients/formats/format.ts";
import type {
  MockUsage,
  ModelReply,
  ModelRequest,
} from "../clients/formats/mock-model.ts";
import { openaiChat } from "../clients/formats/openai-chat.ts";
import { openaiResponses } from "../clients/formats/openai-responses.ts";

/** What the provider answers: a reply, or an error of its own. */
export type Scripted = ScriptedReply | ScriptedError;

export interface ScriptedReply extends Omit<ModelReply, "usage"> {
  /** Delays the rest of a stream after its first event. */
  readonly afterFirstEvent?: () => Promise<void>;
}

export interface ScriptedError {
  readonly status: number;
  readonly message: string;
  /** Seconds. */
  readonly retryAfter?: number;
}

export type Script = (request: ModelRequest) => Scripted;

/** One call as the provider bills it. */
export interface ProviderCall {
  /** The gateway's call id. */
  readonly id: string;
  /** `/openai/v1/responses`, `/anthropic/v1/messages`, `/local/v1/chat/completions`, … */
  readonly path: string;
  readonly model: string;
  /** null: it failed, and costs nothing. */
  readonly usage: MockUsage | null;
  /** Whether all of the answer was sent. */
  finished: boolean;
}

export interface ScriptedProvider {
  readonly url: string;
  readonly calls: readonly ProviderCall[];
  /** Replaces the script and forgets the calls. */
  follow(script: Script): void;
  close(): Promise<void>;
}

/**
 * One server that is OpenAI under `/openai`, Anthropic under `/anthropic`, and a local runner without `/responses` under `/local`. Its
 * answers follow a script, and the tokens of each call differ, so that no two calls have the same price.
 */
export async function startScriptedProvider(): Promise<ScriptedProvider> {
  let calls: ProviderCall[] = [];
  let script: Script = () => ({ thinking: null, text: ["Hello."], calls: [] });
  let served = 0;

  async function serve(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const url = new URL(request.url ?? "/", "http://provider");
    const format = formatOf(url.pathname);
    if (request.method !== "POST" || format === null) {
      return void response.writeHead(404).end("404 page not found");
    }
    const body = JSON.parse(await readAll(request)) as Json;
    const refusal = url.pathname.startsWith("/local/")
      ? null
      : format.refuse(request.headers, url);
    if (refusal !== null) {
      return sendRefusal(response, format, refusal);
    }
    const mistake =
      mistakeOfModel(url.pathname, body) ?? format.mistakeIn(body);
    const scripted: Scripted =
      mistake === null
        ? script(format.parse(body))
        : { status: 400, message: mistake };
    const call: ProviderCall = {
      id: String(request.headers["x-request-id"]),
      path: url.pathname,
      model: String(body["model"]),
      usage: "status" in scripted ? null : usageOf(++served),
      finished: false,
    };
    calls.push(call);
    if ("status" in scripted || call.usage === null) {
      const error = scripted as ScriptedError;
      return sendRefusal(response, format, error, error);
    }
    const reply = { ...scripted, usage: call.usage, id: String(served) };
    if (body["stream"] !== true) {
      call.finished = true;
      return sendJson(response, 200, format.answer(reply, body));
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const [index, piece] of [...format.stream(reply, body)].entries()) {
      response.write(piece);
      if (index === 0) {
        await scripted.afterFirstEvent?.();
      }
    }
    call.finished = !response.destroyed;
    response.end();
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) =>
      sendJson(response, 500, { error: { message: String(error) } }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get calls() {
      return calls;
    },
    follow(next) {
      calls = [];
      script = next;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function formatOf(path: string): ProviderFormat | null {
  switch (path) {
    case "/openai/v1/responses":
      return openaiResponses;
    case "/openai/v1/chat/completions":
    case "/local/v1/chat/completions":
      return openaiChat;
    case "/anthropic/v1/messages":
      return anthropicMessages;
    default:
      return null;
  }
}

/** What the models behind the aliases reject, in their servers' words. */
function mistakeOfModel(path: string, body: Json): string | null {
  const later = listOf(body["messages"]).slice(1);
  if (path.startsWith("/local/")) {
    return later.some(({ role }) => role === "system" || role === "developer")
      ? "System message must be at the beginning."
      : null;
  }
  if (body["model"] !== "claude-sonnet-4-5") {
    return null;
  }
  if (later.some(({ role }) => role === "system")) {
    return "role 'system' is not supported on this model";
  }
  if (recordOf(body["thinking"])["type"] === "adaptive") {
    return "adaptive thinking is not supported on this model";
  }
  return recordOf(body["output_config"])["effort"] === undefined
    ? null
    : "This model does not support the effort parameter.";
}

function usageOf(served: number): MockUsage {
  return {
    inputTokens: 5_000 + 111 * served,
    cachedTokens: 1_000 + 7 * served,
    outputTokens: 50 + served,
  };
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) {
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
}
