import { once } from "node:events";
import type { FastifyReply } from "fastify";
import { usageOf } from "../accounting/usage.ts";
import type { Gateway } from "../gateway.ts";
import { CallError, errorBody } from "../http/errors.ts";
import {
  unreachable,
  upstreamMessage,
  type UpstreamFailure,
} from "../providers/failure.ts";
import {
  createStreamReader,
  wantsUsage,
  type StreamReader,
} from "../providers/openai.ts";
import { createSseParser, type SseEvent } from "../providers/sse.ts";
import type { Admitted } from "./admit.ts";
import { keepAnswer } from "./answer.ts";
import type { Call } from "./call.ts";
import { answerHeaders } from "./headers.ts";
import { correctUsage, type Upstream } from "./provider.ts";
import { endCall } from "./record.ts";

type UpstreamStream = Extract<Upstream, { kind: "stream" }>;

/** A stream longer than this is passed on but not kept in the cache. */
const MOST_CACHED_CHARACTERS = 4 * 1024 * 1024;
const CONTENT_TYPE = "text/event-stream; charset=utf-8";
const DONE = "data: [DONE]\n\n";

type StreamEnd =
  | { readonly kind: "whole" }
  | { readonly kind: "client_gone" }
  /** The provider said in the stream that it failed; the client has read it. */
  | { readonly kind: "failed" }
  | { readonly kind: "cut"; readonly failure: UpstreamFailure };

/** What a stream left behind while it passed. */
interface Passed {
  firstTokenAt: number | null;
  /** Its text for the cache; null once it is too long for it. */
  kept: string[] | null;
  characters: number;
}

/**
 * Passes a stream on event by event. Its end is held back until the call is recorded and settled. When the client
 * leaves, the provider is stopped and what was produced is billed; when the provider breaks off, the stream ends with
 * an error event.
 */
export async function streamAnswer(
  gateway: Gateway,
  call: Call,
  admitted: Admitted,
  upstream: UpstreamStream,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const client = reply.raw;
  const headers = answerHeaders(call, admitted, {
    upstream,
    cost: null,
    cache: call.cacheKey === null ? "bypass" : "miss",
  });
  gateway.underWay.endsBy(call.id, upstream.abort);
  reply.hijack();
  client.writeHead(200, {
    ...headers,
    "content-type": CONTENT_TYPE,
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
  });
  // A client that stopped reading must not hold its limits for ever.
  client.setTimeout(gateway.config.timeouts.idleMs, () => client.destroy());
  try {
    await passAndRecord(gateway, call, upstream, client);
  } catch (error) {
    client.destroy();
    throw error;
  }
  return reply;
}

async function passAndRecord(
  gateway: Gateway,
  call: Call,
  upstream: UpstreamStream,
  client: FastifyReply["raw"],
): Promise<void> {
  const reader = createStreamReader();
  const passed: Passed = { firstTokenAt: null, kept: [], characters: 0 };
  const end = await passOn(
    upstream,
    reader,
    client,
    wantsUsage(call.body),
    passed,
    audienceOf(gateway, call),
  );
  const facts = reader.facts();
  const usage = usageOf(gateway.tokens, call, upstream.deployment, facts);
  const outcome = await endCall(gateway, call, {
    status: end.kind === "cut" || end.kind === "failed" ? "failure" : "success",
    deployment: upstream.deployment,
    usage,
    firstTokenAt: passed.firstTokenAt,
    responseId: facts.responseId,
    cached: null,
    metadata: metadataOf(end, upstream),
  });
  correctUsage(gateway, upstream, usage);
  if (end.kind === "whole" && passed.kept !== null)
    keepAnswer(gateway, call, outcome, {
      contentType: CONTENT_TYPE,
      usage,
      cost: outcome.spend,
      responseId: facts.responseId,
      modelId: upstream.deployment.id,
      body: Buffer.from(passed.kept.join("") + DONE),
    });
  if (end.kind === "cut")
    client.write(errorEvent(call.group.alias, end.failure));
  if (end.kind !== "client_gone") client.end(DONE);
}

/** Others who wait for the same answer: while there are any, the provider goes on though the client left. */
interface Audience {
  othersListen(): boolean;
  whenNobodyListens(stop: () => void): void;
}

function audienceOf(gateway: Gateway, call: Call): Audience {
  const key = call.cacheKey;
  return {
    othersListen: () => key !== null && gateway.flights.hasFollowers(key),
    whenNobodyListens(stop) {
      if (key !== null) gateway.flights.whenAbandoned(key, stop);
    },
  };
}

async function passOn(
  upstream: UpstreamStream,
  reader: StreamReader,
  client: FastifyReply["raw"],
  usageWanted: boolean,
  passed: Passed,
  audience: Audience,
): Promise<StreamEnd> {
  let abandoned = false;
  const abandon = () => {
    abandoned = true;
    upstream.abort();
  };
  const onClose = () => {
    if (audience.othersListen()) audience.whenNobodyListens(abandon);
    else abandon();
  };
  if (client.destroyed) onClose();
  client.once("close", onClose);
  const parser = createSseParser();
  try {
    for await (const chunk of upstream.body as AsyncIterable<Buffer>) {
      const taken = take(parser.push(chunk), reader, usageWanted);
      if (taken.text !== "") {
        keep(passed, taken.text);
        if (!client.destroyed && !client.write(taken.text))
          await Promise.race([once(client, "drain"), once(client, "close")]);
      }
      if (taken.failed) return { kind: "failed" };
      if (taken.done) return { kind: "whole" };
      if (abandoned) return { kind: "client_gone" };
    }
    const rest = take(parser.end(), reader, usageWanted);
    if (rest.text !== "") client.write(rest.text);
    // Not every server says [DONE]; a stream that ends in order is whole.
    return { kind: "whole" };
  } catch (error) {
    return abandoned
      ? { kind: "client_gone" }
      : {
          kind: "cut",
          failure: unreachable(error, upstream.deployment.apiBase),
        };
  } finally {
    client.off("close", onClose);
    if (!upstream.body.destroyed) upstream.body.destroy();
  }
}

function errorEvent(alias: string, failure: UpstreamFailure): string {
  const error = new CallError(
    "upstream_error",
    `${alias}: ${upstreamMessage(failure)}`,
    { status: failure.status },
  );
  return `data: ${JSON.stringify(errorBody(error))}\n\n`;
}

function keep(passed: Passed, text: string): void {
  passed.firstTokenAt ??= Date.now();
  passed.characters += text.length;
  if (passed.characters > MOST_CACHED_CHARACTERS) passed.kept = null;
  passed.kept?.push(text);
}

/** The text that events put on the wire; `done` and `failed` when the provider said so. */
function take(
  events: readonly SseEvent[],
  reader: StreamReader,
  usageWanted: boolean,
): { readonly done: boolean; readonly failed: boolean; readonly text: string } {
  let text = "";
  let failed = false;
  for (const event of events) {
    const what = reader.read(event);
    if (what === "done") return { done: true, failed, text };
    if (what === "usage_only" && !usageWanted) continue;
    if (what === "error") failed = true;
    text += `data: ${event.data.includes("\n") ? event.data.replaceAll("\n", "\ndata: ") : event.data}\n\n`;
  }
  return { done: false, failed, text };
}

function metadataOf(
  end: StreamEnd,
  { attempts }: UpstreamStream,
): Readonly<Record<string, unknown>> | null {
  const tried = attempts.length === 0 ? {} : { attempts };
  switch (end.kind) {
    case "whole":
      return attempts.length === 0 ? null : tried;
    case "failed":
      return {
        ...tried,
        error_information: {
          error_message: "the provider ended its stream with an error",
        },
      };
    case "client_gone":
      return { ...tried, client_disconnected: true };
    case "cut":
      return {
        ...tried,
        error_information: {
          error_code: String(end.failure.status),
          error_message: end.failure.message,
        },
      };
  }
}
