import { randomUUID } from "node:crypto";
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import Fastify, { type FastifyReply, type FastifyRequest } from "fastify";
import { z } from "zod";
import { answerChat, countTokens, embed } from "./answers.ts";

const MODEL = "hearth-echo";
const OWNER = "hearth (an echo, not a model)";

const chatBody = z.looseObject({
  model: z.string().default(MODEL),
  messages: z.array(z.looseObject({ role: z.string() })).min(1),
  stream: z.boolean().nullish(),
  stream_options: z
    .looseObject({ include_usage: z.boolean().optional() })
    .nullish(),
  max_tokens: z.number().int().positive().nullish(),
  max_completion_tokens: z.number().int().positive().nullish(),
});
const embeddingBody = z.looseObject({
  model: z.string().default(MODEL),
  input: z.union([z.string(), z.array(z.string()).min(1)]),
  encoding_format: z.enum(["float", "base64"]).optional(),
});

interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

interface EchoOptions {
  readonly port: number;
  /** A file for one JSON line per finished call, written before the last byte is sent. */
  readonly record?: string;
}

/** An OpenAI-compatible server on loopback that repeats its input: chat (also streamed) and embeddings. */
export async function startEcho(options: EchoOptions): Promise<{
  readonly address: string;
  readonly close: () => Promise<void>;
}> {
  const server = Fastify({ bodyLimit: 32 * 1024 * 1024 });
  server.setErrorHandler(
    (error: Error & { statusCode?: number }, _request, reply) =>
      reject(reply, error.statusCode ?? 500, error.message),
  );
  server.setNotFoundHandler((request, reply) =>
    reject(
      reply,
      404,
      `the echo has no endpoint ${request.method} ${request.url}`,
    ),
  );
  server.get("/v1/models", () => ({
    object: "list",
    data: [{ id: MODEL, object: "model", created: 0, owned_by: OWNER }],
  }));
  server.post("/v1/chat/completions", (request, reply) =>
    chat(request, reply, options.record),
  );
  server.post("/v1/embeddings", (request, reply) =>
    embeddings(request, reply, options.record),
  );
  const address = await server.listen({
    port: options.port,
    host: "127.0.0.1",
  });
  return { address, close: () => server.close() };
}

async function chat(
  request: FastifyRequest,
  reply: FastifyReply,
  record: string | undefined,
): Promise<unknown> {
  const parsed = chatBody.safeParse(request.body);
  if (!parsed.success) {
    return reject(reply, 400, describe(parsed.error));
  }
  const { data } = parsed;
  const finish = startRecord(request, data.stream === true, record);
  const answer = answerChat(
    data.messages,
    data.max_completion_tokens ?? data.max_tokens ?? undefined,
  );
  const usage = usageOf(answer.promptTokens, answer.completionTokens);
  const head = {
    id: `chatcmpl-${randomUUID()}`,
    created: Math.floor(Date.now() / 1000),
    model: data.model,
  };
  if (data.stream === true) {
    return stream(reply, head, answer, usage, {
      includeUsage: data.stream_options?.include_usage === true,
      finish,
    });
  }
  await sleep(answer.delayMs);
  finish(usage);
  return {
    ...head,
    object: "chat.completion",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: answer.words.join("") },
        finish_reason: answer.finishReason,
      },
    ],
    usage,
  };
}

function embeddings(
  request: FastifyRequest,
  reply: FastifyReply,
  record: string | undefined,
): FastifyReply {
  const parsed = embeddingBody.safeParse(request.body);
  if (!parsed.success) {
    return reject(reply, 400, describe(parsed.error));
  }
  const finish = startRecord(request, false, record);
  const { input, encoding_format, model } = parsed.data;
  const texts = typeof input === "string" ? [input] : input;
  const tokens = texts.reduce((sum, text) => sum + countTokens(text), 0);
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  finish({ ...usage, completion_tokens: 0 });
  return reply.send({
    object: "list",
    model,
    data: texts.map((text, index) => ({
      object: "embedding",
      index,
      embedding:
        encoding_format === "base64" ? base64Of(embed(text)) : embed(text),
    })),
    usage,
  });
}

function base64Of(vector: readonly number[]): string {
  return Buffer.from(new Float32Array(vector).buffer).toString("base64");
}

/** Notes the start of a call; the returned function writes its line at the end. */
function startRecord(
  request: FastifyRequest,
  streamed: boolean,
  record: string | undefined,
): (usage: Usage) => void {
  const startedAt = new Date().toISOString();
  const given = request.headers["x-request-id"];
  const id = typeof given === "string" ? given : randomUUID();
  return (usage) => {
    if (record === undefined) {
      return;
    }
    const line = {
      id,
      started_at: startedAt,
      finished_at: new Date().toISOString(),
      path: request.url,
      usage,
      stream: streamed,
    };
    try {
      appendFileSync(record, `${JSON.stringify(line)}\n`, { mode: 0o600 });
    } catch {
      // A record on a full disk must not fail the call.
    }
  };
}

async function stream(
  reply: FastifyReply,
  head: Readonly<Record<string, unknown>>,
  answer: ReturnType<typeof answerChat>,
  usage: Usage,
  options: {
    readonly includeUsage: boolean;
    readonly finish: (usage: Usage) => void;
  },
): Promise<void> {
  reply.hijack();
  const out = reply.raw;
  out.writeHead(200, {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
  });
  const send = (choices: readonly unknown[], more: object = {}) =>
    out.write(
      `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices, ...more })}\n\n`,
    );
  const choice = (delta: object, finish: string | null = null) => [
    { index: 0, delta, finish_reason: finish },
  ];
  const pause = answer.delayMs / Math.max(1, answer.words.length);
  send(choice({ role: "assistant", content: "" }));
  for (const word of answer.words) {
    if (pause > 0) {
      await sleep(pause);
    }
    if (out.destroyed) {
      return;
    }
    send(choice({ content: word }));
  }
  send(choice({}, answer.finishReason));
  if (options.includeUsage) {
    send([], { usage });
  }
  options.finish(usage);
  out.end("data: [DONE]\n\n");
}

function usageOf(prompt: number, completion: number): Usage {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  };
}

function reject(
  reply: FastifyReply,
  status: number,
  message: string,
): FastifyReply {
  return reply.code(status).send({
    error: {
      message,
      type: status < 500 ? "invalid_request_error" : "server_error",
      param: null,
      code: String(status),
    },
  });
}

function describe(error: z.ZodError): string {
  return error.issues
    .map((issue) => `${issue.path.join(".") || "body"}: ${issue.message}`)
    .join("; ");
}
