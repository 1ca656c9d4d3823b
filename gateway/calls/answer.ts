import type { FastifyReply } from "fastify";
import type { Outcome } from "../ledger/records.ts";
import {
  decodeAnswer,
  encodeAnswer,
  type CachedAnswer,
} from "../cache/entry.ts";
import type { Gateway } from "../gateway.ts";
import type { Admitted } from "./admit.ts";
import type { Call } from "./call.ts";
import { headerText } from "./deployment-headers.ts";
import { guardAnswer } from "./guard-answer.ts";
import { answerHeaders } from "./headers.ts";
import { isStateful, storeAnswer } from "../responses/store-response.ts";
import { recordAnswer, type WholeUpstream } from "./record-answer.ts";
import { endCall, type RecordPorts } from "./record.ts";

/** Translates a whole answer to the client's shape, records and settles it, then sends it. */
export async function sendAnswer(
  gateway: Gateway,
  call: Call,
  admitted: Admitted,
  upstream: WholeUpstream,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const answered = upstream.translation.answer(upstream.body);
  const body = await guardAnswer(gateway, call, upstream, answered);
  const { facts } = answered;
  const { usage, outcome } = await recordAnswer(
    gateway,
    call,
    upstream,
    facts,
    { metadata: null, response: () => body.toString("utf8") },
  );
  cacheAnswer(gateway, call, outcome, {
    contentType: upstream.contentType,
    usage,
    cost: outcome.spend,
    responseId: facts.responseId,
    body,
  });
  const sent = isStateful(call)
    ? await storeAnswer(gateway, call, upstream.deployment.id, body)
    : body;
  return sendWhole(gateway, call, admitted, reply, {
    upstream,
    outcome,
    body: sent,
  });
}

interface RecordedAnswer {
  readonly upstream: WholeUpstream;
  readonly outcome: Outcome;
  /** As the client gets it. */
  readonly body: Buffer;
}

/** Sends a recorded answer. */
export function sendWhole(
  gateway: Pick<Gateway, "config">,
  call: Call,
  admitted: Admitted,
  reply: FastifyReply,
  { upstream, outcome, body }: RecordedAnswer,
): FastifyReply {
  const headers = answerHeaders(gateway, call, admitted, {
    upstream,
    cost: outcome.spend,
    cache: call.cacheKey === null ? "bypass" : "miss",
  });
  return sendBytes(gateway, reply, headers, {
    contentType: upstream.contentType,
    body,
  });
}

/** Bypasses the framework, which would validate each header again. Throws for an invalid header. */
function sendBytes(
  { config }: Pick<Gateway, "config">,
  reply: FastifyReply,
  headers: Record<string, string>,
  { contentType, body }: Pick<CachedAnswer, "contentType" | "body">,
): FastifyReply {
  if (reply.raw.headersSent) {
    // A stream of comments.
    reply.raw.setTimeout(config.timeouts.idleMs);
    reply.raw.end(body);
    return reply;
  }
  headers["content-type"] = headerText(contentType);
  headers["content-length"] = String(body.length);
  // As a list: Node takes it faster than an object.
  reply.raw.writeHead(200, Object.entries(headers).flat());
  reply.hijack();
  if (body.length > LONG_BODY) {
    // A client that does not read it is disconnected.
    reply.raw.setTimeout(config.timeouts.idleMs);
    reply.raw.end(body);
  } else {
    // Node writes a text together with the head. In Latin-1, each character is one byte.
    reply.raw.end(body.toString("latin1"), "latin1");
  }
  return reply;
}

/** Bytes of a body that takes longer to copy than to write on its own. */
const LONG_BODY = 16_384;

/** Sends the cached answer; null: there is none. */
export async function answerFromCache(
  gateway: RecordPorts & Pick<Gateway, "cache">,
  call: Call,
  admitted: Admitted,
  reply: FastifyReply,
): Promise<FastifyReply | null> {
  const answer =
    admitted.cached === null ? null : decodeAnswer(admitted.cached);
  return answer === null
    ? null
    : sendCached(gateway, call, admitted, answer, reply);
}

/** Sends an answer that another call has paid for: it costs nothing, but has its own row. */
export async function sendCached(
  gateway: RecordPorts & Pick<Gateway, "cache">,
  call: Call,
  admitted: Admitted,
  answer: CachedAnswer,
  reply: FastifyReply,
): Promise<FastifyReply> {
  gateway.cache.count(true);
  await endCall(gateway, call, {
    status: "success",
    deployment: null,
    usage: null,
    firstTokenAt: null,
    responseId: answer.responseId,
    cached: { saved: answer.cost, usage: answer.usage },
    waitedMs: null,
    metadata: null,
    response: () =>
      call.stream || call.itemKeys !== null
        ? null
        : answer.body.toString("utf8"),
  });
  const headers = answerHeaders(gateway, call, admitted, {
    upstream: null,
    cost: 0,
    cache: "hit",
  });
  return sendBytes(gateway, reply, headers, answer);
}

/** Caches an answer for identical calls, unless the caller disabled it. */
export function cacheAnswer(
  gateway: Pick<Gateway, "cache" | "flights">,
  call: Call,
  outcome: Outcome,
  answer: CachedAnswer,
): void {
  if (
    call.cacheKey === null ||
    outcome.status !== "success" ||
    !mayCache(call)
  ) {
    return;
  }
  gateway.cache.store(call.cacheKey, encodeAnswer(answer), call.cache.ttlMs);
  gateway.flights.land(call.cacheKey, answer);
}

/** False if the caller disabled it, or if a guardrail could not check the call: cached answers are sent as checked ones. */
export function mayCache({ cache, guards }: Call): boolean {
  return cache.store && guards?.passedUnchecked !== true;
}
