import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { text as readText } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { anthropicMessages } from "./formats/anthropic.ts";
import { azureChat } from "./formats/azure.ts";
import {
  PROVIDER_SECRET,
  sendJson,
  sendRefusal,
  type Json,
  type ProviderFormat,
} from "./formats/format.ts";
import { geminiChat } from "./formats/gemini.ts";
import { chatUsage, event, openaiChat } from "./formats/openai-chat.ts";
import { openaiResponses } from "./formats/openai-responses.ts";
import {
  MOCK,
  mockReply,
  mockOptionsIn,
  type ModelRequest,
} from "./formats/mock-model.ts";
import { listen } from "../servers/ports.ts";

export const FORMATS = ["openai", "anthropic", "gemini", "azure"] as const;
type FormatName = (typeof FORMATS)[number];

/** What the aliases `NAME-chat` are translated to: `responses` is a model of OpenAI that takes chats by its Responses API. */
export const CHAT_FORMATS = [...FORMATS, "responses"] as const;

interface ReceivedRequest {
  readonly at: number;
  readonly format: FormatName;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Json;
}

export interface MockProviders {
  readonly url: string;
  readonly requests: readonly ReceivedRequest[];
  /** A configuration with the aliases `<format>-chat`, `<format>-embed`, and further ones of one kind each. */
  readonly yaml: string;
  close(): Promise<void>;
}

/** One server that implements each provider's format under a separate path and validates requests as the provider does. */
export async function startMockProviders(): Promise<MockProviders> {
  const requests: ReceivedRequest[] = [];
  const failures = new Map<string, number>();

  async function serve(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const url = new URL(request.url ?? "/", "http://provider");
    const [, name, ...rest] = url.pathname.split("/");
    const path = rest.join("/");
    const body = JSON.parse(await readText(request)) as Json;
    const format = FORMATS.find((known) => known === name);
    if (format === undefined) {
      return sendJson(response, 404, {});
    }
    const { headers } = request;
    requests.push({ at: performance.now(), format, path, headers, body });
    const route = routeOf(format, path);
    if (route === null) {
      return sendJson(response, 404, { error: { message: `no ${path}` } });
    }
    const { wire } = route;
    const refusal = wire.refuse(headers, url);
    if (refusal !== null) {
      return sendRefusal(response, wire, refusal);
    }
    if (route.plain !== null) {
      if (body["stream"] !== true) {
        return sendJson(response, 200, route.plain(body));
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      return void response.end(`${event(route.plain(body))}data: [DONE]\n\n`);
    }
    const modelRequest = readBody(wire, body);
    if (typeof modelRequest === "string") {
      return sendRefusal(response, wire, {
        status: 400,
        message: modelRequest,
      });
    }
    const options = mockOptionsIn(modelRequest.lastText);
    if (options.delayMs !== undefined) {
      await sleep(options.delayMs);
    }
    const prompt = `${format}/${path} ${modelRequest.lastText}`;
    const failed = failures.get(prompt) ?? 0;
    failures.set(prompt, failed + 1);
    if (
      options.status !== undefined &&
      failed < (options.failures ?? Infinity)
    ) {
      const message = options.message ?? `refused with key ${PROVIDER_SECRET}`;
      return sendRefusal(
        response,
        wire,
        { status: options.status, message },
        options,
      );
    }
    const reply = mockReply(modelRequest);
    if (body["stream"] !== true || options.neverStream === true) {
      return sendJson(response, 200, wire.answer(reply, body));
    }
    response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
    });
    let sent = 0;
    for (const piece of wire.stream(reply, body)) {
      if (sent++ === options.cutAfter) {
        await sleep(20);
        return void response.destroy();
      }
      response.write(piece);
    }
    response.end();
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) =>
      sendJson(response, 500, { error: { message: String(error) } }),
    );
  });
  const port = await listen(server);
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    requests,
    yaml: yamlFor(url),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The parsed request, or why the body is invalid. */
function readBody(wire: ProviderFormat, body: Json): ModelRequest | string {
  try {
    return wire.mistakeIn(body) ?? wire.parse(body);
  } catch {
    return "The request body is not valid.";
  }
}

interface MockRoute {
  readonly wire: ProviderFormat;
  /** An answer that supports neither streaming nor options. */
  readonly plain: ((body: Json) => Json) | null;
}

function routeOf(format: FormatName, path: string): MockRoute | null {
  const talk = (wire: ProviderFormat) => ({ wire, plain: null });
  const plain = (wire: ProviderFormat, of: (body: Json) => Json) => ({
    wire,
    plain: of,
  });
  switch (`${format} ${path}`) {
    case "anthropic v1/messages":
      return talk(anthropicMessages);
    case "openai v1/chat/completions":
      return talk(openaiChat);
    case "openai v1/responses":
      return talk(openaiResponses);
    case "openai v1/embeddings":
      return plain(openaiChat, embeddings);
    case "openai v1/completions":
      return plain(openaiChat, completion);
    case "openai v1/moderations":
      return plain(openaiChat, moderation);
    case "openai v1/images/generations":
      return plain(openaiChat, images);
    case "gemini v1beta/openai/chat/completions":
      return talk(geminiChat);
    case "gemini v1beta/openai/embeddings":
      return plain(geminiChat, embeddings);
    case "azure openai/deployments/played-gpt/chat/completions":
      return talk(azureChat);
    case "azure openai/deployments/played-embedding/embeddings":
      return plain(azureChat, embeddings);
    default:
      return null;
  }
}

/** Each vector starts with its index; base64 when requested, as OpenAI's client does by default. */
function embeddings({ model, input, encoding_format: encoding }: Json): Json {
  const inputs = [input].flat();
  return {
    object: "list",
    model,
    data: inputs.map((_, index) => {
      const vector = Float32Array.of(index, 0.25, 0.5);
      return {
        object: "embedding",
        index,
        embedding:
          encoding === "base64"
            ? Buffer.from(vector.buffer).toString("base64")
            : [...vector],
      };
    }),
    usage: { prompt_tokens: 5, total_tokens: 5 },
  };
}

function completion({ model }: Json): Json {
  return {
    id: "cmpl-played",
    object: "text_completion",
    created: 1_763_720_000,
    model,
    choices: [
      { index: 0, text: MOCK.text, logprobs: null, finish_reason: "stop" },
    ],
    usage: chatUsage(MOCK),
  };
}

function moderation({ model }: Json): Json {
  return {
    id: "modr-played",
    model,
    results: [{ flagged: false, categories: {}, category_scores: {} }],
  };
}

function images(): Json {
  return { created: 1_763_720_000, data: [{ b64_json: "aGk=" }] };
}

function yamlFor(url: string): string {
  const bases = {
    openai: `${url}/openai/v1`,
    anthropic: `${url}/anthropic`,
    gemini: `${url}/gemini/v1beta/openai`,
    azure: `${url}/azure`,
  };
  const alias = (name: string, model: string, more = "") => `
  - model_name: ${name}
    provider_params:
      model: ${model}
      api_base: ${bases[model.split("/")[0] as FormatName]}
      api_key: ${PROVIDER_SECRET}
      input_cost_per_token: 0.000001
      output_cost_per_token: 0.000002${more}`;
  return `
model_list:${[
    alias("openai-chat", "openai/gpt-5-mini"),
    alias("anthropic-chat", "anthropic/claude-sonnet-4-5"),
    alias("gemini-chat", "gemini/gemini-3-flash"),
    alias("azure-chat", "azure/played-gpt"),
    alias(
      "without-reasoning",
      "azure/played-gpt",
      "\n    model_info:\n      base_model: gpt-4.1",
    ),
    alias(
      "responses-chat",
      "openai/gpt-5.6",
      "\n    model_info:\n      mode: responses",
    ),
    alias("openai-embed", "openai/text-embedding-3-small"),
    alias("gemini-embed", "gemini/gemini-embedding-001"),
    alias("azure-embed", "azure/played-embedding"),
    alias("openai-other", "openai/omni-moderation-latest"),
    alias("wrong-secret", "openai/gpt-5-mini").replace(
      PROVIDER_SECRET,
      "some-other-secret",
    ),
    // The names of docs/clients.md.
    alias("gpt-mini", "openai/gpt-5-mini"),
    alias("claude-sonnet", "anthropic/claude-sonnet-4-5"),
    alias("embed-local", "openai/text-embedding-3-small"),
  ].join("")}
  - model_name: pending
    provider_params:
      model: openai/gpt-5-mini
      api_key: os.environ/NOBODY_SETS_THIS
router_settings:
  num_retries: 0
  allowed_fails: 100000
`;
}
