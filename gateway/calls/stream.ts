import type { FastifyReply } from "fastify";
import { usageOf } from "../tokens/usage.ts";
import type { Gateway } from "../gateway.ts";
import { CallError } from "../http/errors.ts";
import { unreachable, type UpstreamFailure } from "../providers/failure.ts";
import { wantsUsage } from "../providers/openai.ts";
import { createSseParser } from "../providers/sse.ts";
import { ssePieceText, type StreamPiece } from "../providers/wire.ts";
import type { Admitted } from "./admit.ts";
import { keepAnswer } from "./answer.ts";
import type { Call } from "./call.ts";
import { answerHeaders } from "./headers.ts";
import { errorTextFor } from "./hide-addresses.ts";
import { correctUsage, type Upstream } from "./provider.ts";
import { endCall, storePrompt } from "./record.ts";
import type { StreamTranslation } from "./translation.ts";

type UpstreamStream = Extract<Upstream, { kind: "stream" }>;

/** A stream longer than this is passed on but not kept in the cache. */
const MOST_CACHED_CHARACTERS = 4 * 1024 * 1024;
/** After the client has left at the announced end, the provider's usage is waited for this long. */
const USAGE_GRACE_MS = 5_000;
const CONTENT_TYPE = "text/event-stream; charset=utf-8";

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
  /** The client left before the stream's end. */
  clientLeft: boolean;
  /** Its last events, held back until the call is recorded. */
  ending: string;
}

/**
 * Passes a stream on event by event. Its end is held back until the call is recorded and settled. When the client
 * leaves, the provider is stopped and what was produced is billed; at the announced end its usage is waited for first.
 * When the provider breaks off, the stream ends with an error event.
 */
export async function streamAnswer(
  gateway: Gateway,
  call: Call,
  admitted: Admitted,
  upstream: UpstreamStream,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const client = reply.raw;
  try {
    const headers = answerHeaders(gateway, call, admitted, {
      upstream,
      cost: null,
      cache: call.cacheKey === null ? "bypass" : "miss",
    });
    client.writeHead(200, {
      ...headers,
      "content-type": CONTENT_TYPE,
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    });
    reply.hijack();
    // Idle is only who does not read: untilRead sets the time.
    client.setTimeout(0, () => client.destroy());
    await passAndRecord(gateway, call, upstream, client);
  } catch (error) {
    endUnread(upstream);
    // Past the framework nobody else would end it.
    if (reply.sent) {
      client.destroy();
    }
    throw error;
  }
  return reply;
}

/** Without a listener the error of a body that nobody reads would end the process. */
function endUnread({ body, abort }: UpstreamStream): void {
  body.on("error", () => undefined).destroy();
  abort();
}

async function passAndRecord(
  gateway: Gateway,
  call: Call,
  upstream: UpstreamStream,
  client: FastifyReply["raw"],
): Promise<void> {
  const stream = upstream.translation.stream();
  const passed: Passed = {
    firstTokenAt: null,
    kept: [],
    characters: 0,
    clientLeft: false,
    ending: "",
  };
  const begunAt = performance.now();
  const end = await passOn(gateway, call, upstream, stream, client, passed);
  const streamedMs = performance.now() - begunAt;
  const facts = stream.facts();
  const usage = usageOf(gateway.tokens, call, upstream.deployment, facts);
  const outcome = await endCall(gateway, call, {
    status: end.kind === "cut" || end.kind === "failed" ? "failure" : "success",
    deployment: upstream.deployment,
    usage,
    firstTokenAt: passed.firstTokenAt,
    responseId: facts.responseId,
    cached: null,
    waitedMs: upstream.waitedMs + streamedMs,
    metadata: metadataOf(end, upstream, passed.clientLeft),
  });
  storePrompt(gateway, call, () => JSON.stringify(facts.text));
  correctUsage(gateway, upstream, usage);
  if (end.kind === "whole" && passed.kept !== null) {
    keepAnswer(gateway, call, outcome, {
      contentType: CONTENT_TYPE,
      usage,
      cost: outcome.spend,
      responseId: facts.responseId,
      modelId: upstream.deployment.id,
      body: Buffer.from(passed.kept.join("") + passed.ending),
    });
  }
  client.setTimeout(gateway.config.timeouts.idleMs);
  if (end.kind === "cut") {
    client.end(textOf(stream.fail(brokenOff(gateway, call, end.failure))));
  } else if (end.kind !== "client_gone") {
    client.end(passed.ending);
  }
}

/** Others who wait for the same answer: while there are any, the provider goes on though the client left. */
interface Audience {
  othersListen(): boolean;
  whenNobodyListens(stop: () => void): void;
  /** The answer is too long to share: those who wait ask for themselves. */
  cannotShare(): void;
}

function audienceOf(gateway: Gateway, call: Call): Audience {
  const key = call.cacheKey;
  return {
    othersListen: () => key !== null && gateway.flights.hasFollowers(key),
    whenNobodyListens(stop) {
      if (key !== null) {
        gateway.flights.whenAbandoned(key, stop);
      }
    },
    cannotShare() {
      if (key !== null) {
        gateway.flights.land(key, "not_shared");
      }
    },
  };
}

async function passOn(
  gateway: Gateway,
  call: Call,
  upstream: UpstreamStream,
  stream: StreamTranslation,
  client: FastifyReply["raw"],
  passed: Passed,
): Promise<StreamEnd> {
  const audience = audienceOf(gateway, call);
  const usageWanted = wantsUsage(call.body);
  const errorText = (text: string) => errorTextFor(call.caller, gateway, text);
  let abandoned = false;
  let grace: NodeJS.Timeout | undefined;
  const stop = () => {
    abandoned = true;
    upstream.abort();
  };
  const abandon = () => {
    passed.clientLeft = true;
    if (lacksOnlyUsage(stream)) {
      grace = setTimeout(stop, USAGE_GRACE_MS);
    } else {
      stop();
    }
  };
  const onClose = () => {
    if (audience.othersListen()) {
      audience.whenNobodyListens(abandon);
    } else {
      abandon();
    }
  };
  if (client.destroyed) {
    onClose();
  }
  client.once("close", onClose);
  const parser = createSseParser();
  try {
    for await (const chunk of upstream.chunks) {
      const pieces = parser.push(chunk).flatMap((event) => stream.push(event));
      const taken = take(pieces, usageWanted, passed, errorText);
      if (passed.kept === null) {
        audience.cannotShare();
      }
      if (taken.text !== "" && !client.destroyed && !client.write(taken.text)) {
        await untilRead(client, gateway.config.timeouts.idleMs);
      }
      if (taken.failed) {
        return { kind: "failed" };
      }
      if (taken.done) {
        return { kind: "whole" };
      }
      if (abandoned || (passed.clientLeft && !lacksOnlyUsage(stream))) {
        return { kind: "client_gone" };
      }
    }
    const rest = [
      ...parser.end().flatMap((event) => stream.push(event)),
      ...stream.end(),
    ];
    const taken = take(rest, usageWanted, passed, errorText);
    if (taken.text !== "") {
      client.write(taken.text);
    }
    return { kind: taken.failed ? "failed" : "whole" };
  } catch (error) {
    return passed.clientLeft
      ? { kind: "client_gone" }
      : {
          kind: "cut",
          failure: unreachable(error, upstream.deployment.apiBase),
        };
  } finally {
    clearTimeout(grace);
    client.off("close", onClose);
    if (!upstream.body.destroyed) {
      upstream.body.destroy();
    }
  }
}

/** Until the client has read what it was sent, or has left. One that reads nothing for `idleMs` holds limits for no use. */
function untilRead(client: FastifyReply["raw"], idleMs: number): Promise<void> {
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

/** A client that closes at `finish_reason` has its answer; the provider's usage, which is billed, comes after it. */
function lacksOnlyUsage(stream: StreamTranslation): boolean {
  const { usage, endAnnounced } = stream.facts();
  return usage === null && endAnnounced === true;
}

/** The text that goes to the client now; the last events are kept for after the record. */
function take(
  pieces: readonly StreamPiece[],
  usageWanted: boolean,
  passed: Passed,
  errorText: (text: string) => string,
): {
  readonly done: boolean;
  readonly failed: boolean;
  readonly text: string;
} {
  let text = "";
  let done = false;
  let failed = false;
  for (const piece of pieces) {
    if (piece.kind === "usage_only" && !usageWanted) {
      continue;
    }
    failed ||= piece.kind === "error";
    done ||= piece.kind === "done";
    const shown =
      piece.kind === "error"
        ? { ...piece, data: errorText(piece.data) }
        : piece;
    if (done) {
      passed.ending += ssePieceText(shown);
    } else {
      text += ssePieceText(shown);
    }
  }
  if (text !== "") {
    keep(passed, text);
  }
  return { done, failed, text };
}

function keep(passed: Passed, text: string): void {
  passed.firstTokenAt ??= Date.now();
  passed.characters += text.length;
  if (passed.characters > MOST_CACHED_CHARACTERS) {
    passed.kept = null;
  }
  passed.kept?.push(text);
}

function textOf(pieces: readonly StreamPiece[]): string {
  return pieces.map(ssePieceText).join("");
}

function brokenOff(
  gateway: Gateway,
  { caller, group }: Call,
  { status, message }: UpstreamFailure,
): CallError {
  return new CallError(
    "upstream_error",
    `${group.alias}: ${errorTextFor(caller, gateway, message)}`,
    { status },
  );
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
