import type { FastifyReply } from "fastify";
import { usageOf } from "../tokens/usage.ts";
import type { Gateway } from "../gateway.ts";
import type { StreamCheck } from "../guardrails/stream-check.ts";
import { CallError, loggedMessage } from "../http/errors.ts";
import { errorInEvent } from "../providers/answered-error.ts";
import { reservePart } from "../providers/counted-answer.ts";
import { withoutSecret } from "../providers/error-answer.ts";
import { brokenOff, UpstreamFailure } from "../providers/failure.ts";
import { requestedUsage } from "../providers/openai.ts";
import { createStreamParser } from "../providers/stream-errors.ts";
import { lastEvents } from "../providers/stream-start.ts";
import { readRest, stopReading } from "../providers/streamed-answer.ts";
import { sseText, type StreamPiece } from "../providers/wire.ts";
import type { Admitted } from "./admit.ts";
import { cacheAnswer } from "./answer.ts";
import { Audience } from "./audience.ts";
import type { Call } from "./call.ts";
import { inDialect } from "./call-error.ts";
import { failedCallError } from "./failed-call.ts";
import { streamCheckOf } from "./guard-answer.ts";
import { answerHeaders } from "./headers.ts";
import { isStateful, StoringStream } from "../responses/store-response.ts";
import { errorEventFor } from "./hide-addresses.ts";
import { correctUsage, type ArrivingAnswer } from "./provider.ts";
import { recordRejection } from "./record-refusal.ts";
import { endCall } from "./record.ts";
import { endUnread, reserveFor } from "./send-attempt.ts";
import { withSpokenSeconds } from "./spoken-length.ts";
import { StreamText } from "./stream-text.ts";
import type { StreamTranslation } from "./translation.ts";
import { openStream, SilenceComments, STREAM_TYPE } from "./stream-comments.ts";

type UpstreamStream = ArrivingAnswer;

type StreamEnd =
  | { readonly kind: "whole" }
  | { readonly kind: "client_gone" }
  /** The provider reported an error in the stream, which the client has received. */
  | { readonly kind: "failed"; readonly failure: UpstreamFailure }
  /** A guardrail blocked it, or is unavailable. */
  | { readonly kind: "blocked"; readonly error: CallError }
  | { readonly kind: "cut"; readonly failure: UpstreamFailure };

/**
 * Passes a stream on event by event. Its end is held back until the call is recorded and settled. When the client
 * leaves, the provider is stopped and what was generated is billed; at the announced end its usage is awaited first.
 * When the provider breaks off, the stream ends with an error event.
 */
export async function streamAnswer(
  gateway: Gateway,
  call: Call,
  admitted: Admitted,
  upstream: UpstreamStream,
  reply: FastifyReply,
): Promise<FastifyReply> {
  let isOpen = false;
  try {
    if (call.guards !== null) {
      await call.guards.during;
    }
    const headers = answerHeaders(gateway, call, admitted, {
      upstream,
      cost: null,
      cache: call.cacheKey === null ? "bypass" : "miss",
    });
    openStream(reply, headers);
    isOpen = true;
    await passAndRecord(gateway, call, upstream, reply);
  } catch (error) {
    endUnread(upstream);
    // After hijack the framework does not end the response.
    if (isOpen) {
      reply.raw.destroy();
    }
    throw error;
  }
  return reply;
}

async function passAndRecord(
  gateway: Gateway,
  call: Call,
  upstream: UpstreamStream,
  reply: FastifyReply,
): Promise<void> {
  const client = reply.raw;
  const stream = withReadableErrors(gateway, call, upstream);
  const text = new StreamText(call, requestedUsage(call.body));
  const audience = new Audience(
    gateway.flights,
    call,
    client,
    stream,
    upstream.abort,
  );
  const check = streamCheckOf(gateway, call);
  const storing = isStateful(call) ? new StoringStream(call) : null;
  const passed = { stream, check, storing, text, audience };
  const startedAt = performance.now();
  const end = await passOn(gateway, call, upstream, client, passed);
  const streamedMs = performance.now() - startedAt;
  if (end.kind === "cut" || end.kind === "failed") {
    upstream.brokeOff(end.failure);
  }
  const { deployment } = upstream;
  const facts = await withSpokenSeconds(call, deployment, stream.facts());
  const usage = usageOf(gateway.tokens, call, deployment, facts);
  const succeeded = end.kind === "whole" || end.kind === "client_gone";
  const outcome = await endCall(gateway, call, {
    status: succeeded ? "success" : "failure",
    deployment,
    usage,
    firstTokenAt: text.firstTokenAt,
    responseId: facts.responseId,
    cached: null,
    waitedMs: upstream.waitedMs + streamedMs,
    metadata: metadataOf(end, upstream, audience.hasLeft),
    // What a guardrail hid from the client is not kept either.
    response: () => (check === null ? JSON.stringify(facts.text) : null),
  });
  correctUsage(gateway, upstream, usage);
  const whole = end.kind === "whole" ? text.whole() : null;
  if (whole !== null) {
    cacheAnswer(gateway, call, outcome, {
      contentType: STREAM_TYPE,
      usage,
      cost: outcome.spend,
      responseId: facts.responseId,
      body: Buffer.from(whole),
    });
  }
  const ending =
    end.kind === "whole" && storing !== null
      ? await storing.end(gateway, deployment.id, text.ending)
      : text.ending;
  client.setTimeout(gateway.config.timeouts.idleMs);
  sendEnd(gateway, call, end, { ...passed, ending, reply });
}

/** A failed response of OpenAI's repeats its instructions and tools. Looking for addresses in more would stop other calls for long. */
const MAX_ERROR_CHARACTERS = 512 * 1024;

/** A stream whose errors lack the provider's key, and for most callers its address. */
function withReadableErrors(
  gateway: Pick<Gateway, "catalog">,
  { caller }: Call,
  { deployment, translation }: UpstreamStream,
): StreamTranslation {
  const stream = translation.stream();
  return {
    ...stream,
    push(event) {
      if (errorInEvent(event.data) === null) {
        return stream.push(event);
      }
      if (event.data.length > MAX_ERROR_CHARACTERS) {
        throw new UpstreamFailure(
          502,
          `${deployment.apiBase} sent an error that is too long: see its log`,
        );
      }
      const data = withoutSecret(event.data, deployment);
      return stream.push({
        ...event,
        data: errorEventFor(caller, gateway, data),
      });
    },
  };
}

/** Sends what remains of a recorded stream: its last event, or the error that ends it. */
function sendEnd(
  gateway: Gateway,
  call: Call,
  end: StreamEnd,
  {
    stream,
    storing,
    ending,
    reply,
  }: {
    readonly ending: string;
    readonly reply: FastifyReply;
  } & Pick<CheckedStream, "stream" | "storing">,
): void {
  const client = reply.raw;
  const fail = (error: CallError) => {
    const pieces = stream.fail(error);
    client.end(sseText(storing?.push(pieces) ?? pieces));
  };
  if (end.kind === "cut") {
    fail(brokenOffError(gateway, call, end.failure));
  } else if (end.kind === "blocked") {
    recordRejection(gateway, reply.request, end.error, call.kind.route);
    fail(end.error);
  } else if (end.kind !== "client_gone") {
    client.end(ending);
  }
}

interface CheckedStream {
  readonly stream: StreamTranslation;
  /** null: no guardrail checks it. */
  readonly check: StreamCheck | null;
  /** null: its response is not stored. */
  readonly storing: StoringStream | null;
}

interface PassedStream extends CheckedStream {
  readonly text: StreamText;
  readonly audience: Audience;
}

async function passOn(
  { bodies, config }: Pick<Gateway, "bodies" | "config">,
  call: Call,
  upstream: UpstreamStream,
  client: FastifyReply["raw"],
  { stream, check, storing, text, audience }: PassedStream,
): Promise<StreamEnd> {
  audience.watch();
  const parser = createStreamParser();
  const counted = { ...upstream, reserve: reserveFor(bodies, call) };
  const comments = new SilenceComments(client, call.group.alias);
  let isRead = false;
  try {
    for await (const chunk of upstream.chunks) {
      const pieces = parser.push(chunk).flatMap((event) => stream.push(event));
      reservePart(counted, chunk, parser.unfinished);
      const passed = check === null ? pieces : await check.push(pieces);
      const taken = text.take(storing?.push(passed) ?? passed);
      if (!text.fitsCache) {
        audience.cannotShare();
      }
      if (taken.text !== "" && !client.destroyed) {
        comments.restart();
        if (!client.write(taken.text)) {
          await untilRead(client, config.timeouts.idleMs);
        }
      }
      if (taken.failed) {
        return failedBy(passed);
      }
      if (taken.done) {
        isRead = true;
        return { kind: "whole" };
      }
      if (audience.isDone) {
        return { kind: "client_gone" };
      }
      if (parser.unfinished < chunk.length) {
        bodies.release(call.id);
      }
    }
    const rest = [
      ...lastEvents(parser).flatMap((event) => stream.push(event)),
      ...stream.end(),
    ];
    const passed = (await check?.push(rest, true)) ?? rest;
    const taken = text.take(storing?.push(passed) ?? passed);
    if (taken.text !== "") {
      client.write(taken.text);
    }
    return taken.failed ? failedBy(passed) : { kind: "whole" };
  } catch (error) {
    return endedBy(error, upstream, audience);
  } finally {
    comments.end();
    audience.unwatch();
    endBody(upstream, isRead);
  }
}

/** By an error of a guardrail, the provider or the connection to it, or because there is no memory left. */
function endedBy(
  error: unknown,
  upstream: UpstreamStream,
  audience: Audience,
): StreamEnd {
  if (error instanceof CallError) {
    upstream.abort();
    return { kind: "blocked", error };
  }
  if (audience.hasLeft) {
    return { kind: "client_gone" };
  }
  const failure =
    error instanceof UpstreamFailure
      ? error
      : brokenOff(error, upstream.deployment.apiBase);
  return { kind: "cut", failure };
}

/** By the error among the last events. */
function failedBy(pieces: readonly StreamPiece[]): StreamEnd {
  const data = pieces.find(({ kind }) => kind === "error")?.data ?? "";
  const { status, text } = errorInEvent(data) ?? { status: 502, text: data };
  return { kind: "failed", failure: new UpstreamFailure(status, text) };
}

/** `isRead`: its last event has arrived. */
function endBody({ body }: UpstreamStream, isRead: boolean): void {
  if (isRead) {
    readRest(body);
  } else {
    stopReading(body);
  }
}

/** Resolves when the client has read what was sent, or has left. One that reads nothing for `idleMs` is disconnected, as it holds limits. */
export function untilRead(
  client: FastifyReply["raw"],
  idleMs: number,
): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      client.off("drain", done).off("close", done);
      client.setTimeout(0);
      resolve();
    };
    client.on("drain", done).on("close", done);
    client.setTimeout(idleMs);
  });
}

function brokenOffError(
  gateway: Pick<Gateway, "catalog" | "config">,
  call: Call,
  failure: UpstreamFailure,
): CallError {
  return inDialect(gateway, failedCallError(gateway, call, failure));
}

function metadataOf(
  end: StreamEnd,
  { attempts }: UpstreamStream,
  clientLeft: boolean,
): Readonly<Record<string, unknown>> | null {
  const tried = {
    ...(attempts.length === 0 ? {} : { attempts }),
    ...(clientLeft ? { client_disconnected: true } : {}),
  };
  switch (end.kind) {
    case "whole":
    case "client_gone":
      return Object.keys(tried).length === 0 ? null : tried;
    case "failed":
      return {
        ...tried,
        error_information: {
          error_message: "the provider ended its stream with an error",
        },
      };
    case "blocked":
      return {
        ...tried,
        error_information: { error_message: loggedMessage(end.error) },
      };
    case "cut":
      return {
        ...tried,
        error_information: {
          error_code: String(end.failure.status),
          error_message: end.failure.keptMessage,
        },
      };
  }
}
