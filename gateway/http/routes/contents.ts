import { text as textOfStream } from "node:stream/consumers";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { SseParser } from "../../../core/sse.ts";
import { numberOf, parseRecord, type JsonRecord } from "../../../core/json.ts";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import { out } from "../../admin/kinds/out.ts";
import { startRace, type Race } from "../../calls/race.ts";
import { recordRejection } from "../../calls/record-refusal.ts";
import { openStream } from "../../calls/stream-comments.ts";
import { untilRead } from "../../calls/stream.ts";
import { validateBody } from "../../calls/validate.ts";
import { errorMessageIn } from "../../dialects/chat-answer.ts";
import { contentsAnswer } from "../../dialects/contents-answer.ts";
import {
  contentsError,
  contentsErrorOf,
} from "../../dialects/contents-error.ts";
import { chatOfContents } from "../../dialects/contents-request.ts";
import { ContentsStream } from "../../dialects/contents-stream.ts";
import type { Gateway } from "../../gateway.ts";
import { CallError } from "../errors.ts";
import {
  headersToPass,
  sendInner,
  streamInner,
  type InnerAnswer,
} from "../inner-request.ts";
import { route } from "../route.ts";

const NAME = "POST /v1beta/models/*";
const CHAT = "/v1/chat/completions";
const COUNT = "/utils/token_counter";

/** Clients of Gemini send what its models take, without a setting that leaves it out: other providers get what they take of it. */
const GENERATION = [
  "reasoning_effort",
  "extra_body",
  "temperature",
  "top_p",
  "top_k",
  "seed",
  "presence_penalty",
  "frequency_penalty",
];

const contentsBody = z.looseObject({
  contents: z.array(z.looseObject({})).min(1),
});

/** Of both kinds of calls, and of a count. */
const contentsOut = z.looseObject({
  candidates: z.array(z.looseObject({})).optional(),
  usageMetadata: z.looseObject({}).optional(),
  modelVersion: out.text.optional(),
  responseId: out.text.optional(),
  totalTokens: out.count.optional(),
});

/** POST /v1beta/models/MODEL:METHOD, Gemini's API: each call is a chat, and takes all of its steps. */
export const contents = route(
  NAME,
  {
    summary:
      "Chat with a model (Gemini's API): MODEL:generateContent, MODEL:streamGenerateContent or MODEL:countTokens.",
    input: contentsBody,
    answer: contentsOut,
  },
  (gateway, request, reply) =>
    answerContents(gateway, request, reply).catch((error: unknown) => {
      recordRejection(gateway, request, error, NAME);
      throw error;
    }),
  {
    errorBody: contentsErrorOf,
    streams: true,
    alsoAt: ["/v1/models/*", "/models/*"],
  },
);

interface ContentsCall {
  readonly gateway: Gateway;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly chat: JsonRecord;
}

const METHODS: ReadonlyMap<
  string,
  (call: ContentsCall) => Promise<FastifyReply>
> = new Map([
  ["generateContent", (call) => answerWhole(call, CHAT, contentsAnswer)],
  ["streamGenerateContent", answerStream],
  ["countTokens", (call) => answerWhole(call, COUNT, tokensIn)],
]);

async function answerContents(
  gateway: Gateway,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  authorizeRoute(callerOf(request), NAME);
  const { model, method } = calledIn(request);
  const answer = METHODS.get(method);
  if (answer === undefined) {
    throw new CallError(
      "not_found",
      `${method} is not supported: call generateContent, streamGenerateContent or countTokens, or a route of /v1.`,
    );
  }
  const body = validateBody(contentsBody, request.body);
  const chat = { ...chatOfContents(body), model, drop_params: GENERATION };
  return answer({ gateway, request, reply, chat });
}

/** `gpt-mini:generateContent`; names of models may have colons. */
function calledIn({ params }: FastifyRequest): {
  readonly model: string;
  readonly method: string;
} {
  const { "*": called } = params as { readonly "*": string };
  const at = called.lastIndexOf(":");
  if (at < 1) {
    throw new CallError(
      "not_found",
      "The path must name a model and a method, as MODEL:METHOD.",
    );
  }
  return { model: called.slice(0, at), method: called.slice(at + 1) };
}

function tokensIn(text: string): JsonRecord {
  const { total_tokens: total } = parseRecord(text) ?? {};
  return { totalTokens: numberOf(total) ?? 0 };
}

async function answerWhole(
  { request, reply, chat }: ContentsCall,
  path: string,
  translate: (text: string) => JsonRecord | null,
): Promise<FastifyReply> {
  const answer = await sendInner(request, path, chat, cancelledWith(reply));
  const { statusCode, payload } = answer;
  reply.code(statusCode).headers(headersToPass(answer));
  return statusCode === 200
    ? reply.send(translate(payload) ?? payload)
    : sendError(reply, answer, payload);
}

async function answerStream({
  gateway,
  request,
  reply,
  chat,
}: ContentsCall): Promise<FastifyReply> {
  const streamed = {
    ...chat,
    stream: true,
    stream_options: { include_usage: true },
  };
  const json = Buffer.from(JSON.stringify(streamed));
  const headers = cancelledWith(reply);
  const answer = await streamInner(request, CHAT, json, headers);
  if (answer.statusCode !== 200) {
    const text = await textOfStream(answer.stream());
    reply.code(answer.statusCode).headers(headersToPass(answer));
    return sendError(reply, answer, text);
  }
  const client = reply.raw;
  // Like the connection of a client that leaves.
  const leave = () => answer.raw.res.destroy();
  client.once("close", leave);
  if (client.destroyed) {
    leave();
  }
  openStream(reply, headersToPass(answer) as Record<string, string>);
  // Some of Gemini's clients fail at comments: while a model is silent, they receive the headers only.
  client.flushHeaders();
  await passOn(gateway, answer.stream(), client);
  return reply;
}

async function passOn(
  { config }: Gateway,
  stream: AsyncIterable<Uint8Array>,
  client: FastifyReply["raw"],
): Promise<void> {
  const { idleMs } = config.timeouts;
  try {
    for await (const text of chunksOf(stream)) {
      if (client.destroyed) {
        return;
      }
      if (!client.write(text)) {
        await untilRead(client, idleMs);
      }
    }
    client.setTimeout(idleMs);
    client.end();
  } catch {
    // The inner answer has no end, and its reason is in the ledger.
    client.destroy();
  }
}

/** Headers of an inner request that is cancelled when the client leaves before it is answered. */
function cancelledWith({ raw }: FastifyReply): Race["headers"] {
  const race = startRace("its client left");
  raw.once("close", () => race.end());
  return race.headers;
}

async function* chunksOf(
  stream: AsyncIterable<Uint8Array>,
): AsyncGenerator<string> {
  const parser = new SseParser();
  const translated = new ContentsStream();
  const textsOf = (events: ReturnType<SseParser["push"]>) =>
    events.flatMap(({ data }) => translated.push(data)).map(textOf);
  for await (const bytes of stream) {
    yield* textsOf(parser.push(bytes));
  }
  yield* textsOf(parser.end());
}

/** An error is JSON without an event, as Google's: several of Gemini's clients take one in an event for an empty chunk. */
function textOf(chunk: JsonRecord): string {
  const json = JSON.stringify(chunk);
  return "error" in chunk ? json : `data: ${json}\n\n`;
}

function sendError(
  reply: FastifyReply,
  { statusCode, headers }: Pick<InnerAnswer, "statusCode" | "headers">,
  text: string,
): FastifyReply {
  const wait = headers["retry-after"];
  return reply.send(
    contentsError(
      statusCode,
      errorMessageIn(text),
      wait === undefined ? undefined : String(wait),
    ),
  );
}
