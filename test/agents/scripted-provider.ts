import {
  createServer,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { text as readText } from "node:stream/consumers";
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
import { listen } from "../servers/ports.ts";

/** What the provider answers: a reply, or an error of its own. */
export type Scripted = ScriptedReply | ScriptedError;

interface ScriptedReply extends Omit<ModelReply, "usage"> {
  /** Delays the rest of a stream after its first event. */
  readonly afterFirstEvent?: () => Promise<void>;
}

interface ScriptedError {
  readonly status: number;
  readonly message: string;
  /** Seconds. */
  readonly retryAfter?: number;
}

/** `body`: the request as JSON. */
export type Script = (request: ModelRequest, body: string) => Scripted;

/** One call as the provider bills it. */
interface ProviderCall {
  /** The gateway's call id. */
  readonly id: string;
  /** `/openai/v1/responses`, `/anthropic/v1/messages`, `/local/v1/chat/completions`, … */
  readonly path: string;
  readonly model: string;
  /** Whether the request has tools: one without is for a title and the like. */
  readonly hasTools: boolean;
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

const MAX_REMEMBERED = 20;

/**
 * One server that is OpenAI under `/openai`, Anthropic under `/anthropic`, and a local runner without `/responses` under `/local`; the
 * same again under `/2`, as other deployments. Its answers follow a script. It counts the tokens of prompts by their length, and
 * those that a deployment remembers from an earlier prompt as cached.
 */
export async function startScriptedProvider(): Promise<ScriptedProvider> {
  let calls: ProviderCall[] = [];
  let script: Script = () => ({ thinking: null, text: ["Hello."], calls: [] });
  let served = 0;
  /** Earlier prompts by path. */
  const remembered = new Map<string, string[]>();

  function usageOf(path: string, body: Json): MockUsage {
    const prompt = promptOf(body);
    const known = remembered.get(path) ?? [];
    const cached = Math.max(0, ...known.map((each) => common(each, prompt)));
    remembered.set(path, [...known, prompt].slice(-MAX_REMEMBERED));
    return {
      inputTokens: tokensOf(prompt.length),
      cachedTokens: tokensOf(cached),
      // No two calls have the same price.
      outputTokens: 50 + ++served,
    };
  }

  async function serve(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const url = new URL(request.url ?? "/", "http://provider");
    const format = formatOf(url.pathname);
    if (request.method !== "POST" || format === null) {
      return void response.writeHead(404).end("404 page not found");
    }
    const text = await readText(request);
    const body = JSON.parse(text) as Json;
    const refusal = url.pathname.includes("/local/")
      ? null
      : format.refuse(request.headers, url);
    if (refusal !== null) {
      return sendRefusal(response, format, refusal);
    }
    const mistake =
      mistakeOfModel(url.pathname, body) ?? format.mistakeIn(body);
    const scripted: Scripted =
      mistake === null
        ? script(format.parse(body), text)
        : { status: 400, message: mistake };
    const call: ProviderCall = {
      id: String(request.headers["x-request-id"]),
      path: url.pathname,
      model: String(body["model"]),
      hasTools: listOf(body["tools"]).length > 0,
      usage: "status" in scripted ? null : usageOf(url.pathname, body),
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
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
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
  switch (path.replace(/^\/2\//, "/")) {
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
  if (path.includes("/local/")) {
    return later.some(({ role }) => role === "system" || role === "developer")
      ? "System message must be at the beginning."
      : null;
  }
  if (
    path.endsWith("/openai/v1/chat/completions") &&
    body["model"] === "gpt-5.6" &&
    listOf(body["tools"]).length > 0
  ) {
    return "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.";
  }
  if (path.includes("/openai/") && body["max_tokens"] != null) {
    return "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
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

/** What a provider reads in its order: tools, instructions, conversation; without marks that say what to remember. */
function promptOf({
  tools,
  system,
  instructions,
  messages,
  input,
}: Json): string {
  return JSON.stringify(
    [tools, system, instructions, messages, input],
    (name, value: unknown) => (name === "cache_control" ? undefined : value),
  );
}

function common(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) {
    at++;
  }
  return at;
}

function tokensOf(characters: number): number {
  return Math.floor(characters / 4);
}
