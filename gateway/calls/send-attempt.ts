import type { Gateway } from "../gateway.ts";
import { keyOf } from "../http/bodies.ts";
import { isRetryable, UpstreamFailure } from "../providers/failure.ts";
import type { ProviderCall } from "../providers/provider-call.ts";
import {
  stopReading,
  type StreamedAnswer,
} from "../providers/streamed-answer.ts";
import type { Endpoint } from "../providers/wire.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { Target } from "../routing/route.ts";
import type { Observations } from "../routing/strategies.ts";
import { isManaged } from "../runners/runners.ts";
import { CANCELLED } from "./attempt.ts";
import type { Call } from "./call.ts";
import { withChatInstead } from "./chat-instead.ts";
import { whenLoaded, type ColdLoadOptions } from "./cold-load.ts";
import { headerCounter } from "./litellm-counts.ts";
import { mockAnswer } from "./mock.ts";
import { endWith, lostBecause } from "./race.ts";
import { traceAttempt, withTraceContext } from "./trace.ts";
import type { Translation } from "./translation.ts";
import type { WaitingClient } from "./waiting-client.ts";

/** A call as it is sent to one deployment. */
export interface Sent {
  readonly call: Call;
  /** That of its target, with the credentials that a reload may have changed since the call began. */
  readonly deployment: PricedDeployment;
  readonly translation: Translation;
}

/** An answer of a deployment: whole, or one that is still arriving. */
export type Answered = {
  readonly translation: Translation;
  readonly contentType: string;
} & (
  | { readonly kind: "whole"; readonly body: Buffer }
  | ({ readonly kind: "stream" | "bytes" } & Pick<
      StreamedAnswer,
      "body" | "chunks"
    >)
);

interface AttemptOptions {
  readonly sent: Sent;
  readonly target: Target;
  /** Failed ones of this call. */
  readonly attemptsBefore: number;
  /** Ends the attempt, and later the answer that arrives. */
  readonly aborter: AbortController;
  /** null: none waits. */
  readonly client: WaitingClient | null;
  /** Aborted when another attempt of the call has answered first; null: there is only this one. */
  readonly hedge: AbortSignal | null;
}

export type AttemptPorts = Pick<
  Gateway,
  | "activeCalls"
  | "bodies"
  | "config"
  | "metrics"
  | "providers"
  | "router"
  | "runners"
>;

/** Sends a call to one deployment. Throws {@link UpstreamFailure}. */
export async function sendAttempt(
  gateway: AttemptPorts,
  { sent, target, attemptsBefore, aborter, client, hedge }: AttemptOptions,
): Promise<Answered> {
  const { call, deployment, translation } = sent;
  traceAttempt(call, target);
  const mocked = mockAnswer(call, target, attemptsBefore);
  if (mocked !== null) {
    return { ...mocked, translation };
  }
  const { observations } = gateway.router;
  const startedAt = performance.now();
  observations.started(deployment.id);
  const deadlineAt = deadlineOf(call, gateway.config.timeouts.requestMs);
  const deadline = startDeadline(deadlineAt, aborter);
  const waiting = endsWithClient(call, deployment) ? client : null;
  const races = [call.race, hedge, waiting?.left ?? null];
  const leaveRaces = endWith(races, aborter);
  try {
    const read = await sendLoaded(gateway, sent, {
      client,
      signal: aborter.signal,
    });
    observations.answered(deployment.id, performance.now() - startedAt);
    onceArrived(read, () => observations.ended(deployment.id));
    return read;
  } catch (error) {
    observations.ended(deployment.id);
    const lost = lostBecause(races);
    const failure = !aborter.signal.aborted
      ? error
      : gateway.activeCalls.aborted()
        ? stopped(error)
        : lost !== null
          ? cancelled(lost, error)
          : outOfTime(call, deployment, deadlineAt, error);
    const own = call.ownAccess ? ofOwnAccess(failure) : failure;
    noteFault(observations, deployment, own);
    throw own;
  } finally {
    clearTimeout(deadline);
    leaveRaces();
  }
}

function noteFault(
  observations: Observations,
  { id }: PricedDeployment,
  failure: unknown,
): void {
  if (
    failure instanceof UpstreamFailure &&
    isRetryable(failure) &&
    !failure.byRequest
  ) {
    observations.failed(id, failure.status === 408);
  }
}

/** A stream keeps its deployment busy until it ends, or is stopped. */
function onceArrived(answer: Answered, then: () => void): void {
  if (answer.kind === "whole" || answer.body.closed) {
    then();
  } else {
    answer.body.once("close", then);
  }
}

/**
 * Whether a provider is stopped when no client waits for its answer any more. A whole answer of a cloud provider is charged for in
 * any case: its usage is awaited.
 */
function endsWithClient(call: Call, deployment: PricedDeployment): boolean {
  return call.stream || (isManaged(deployment) && !call.ownAccess);
}

/** Sends a call once its model is loaded, and where the deployment lacks its endpoint as chat. */
function sendLoaded(
  gateway: AttemptPorts,
  { call, deployment, translation }: Sent,
  options: ColdLoadOptions,
): Promise<Answered> {
  const { client, signal } = options;
  return whenLoaded(gateway, call, deployment, options, (firstByteMs) =>
    withChatInstead(gateway, call, deployment, translation, (used) =>
      answerTo(
        gateway,
        call,
        used,
        { ...requestOf(gateway, call, deployment, used), signal, firstByteMs },
        client?.connection ?? null,
      ),
    ),
  );
}

/** Transcripts and subtitles; audio, which health checks read as a whole. */
const OF_ANY_TYPE: ReadonlySet<Endpoint> = new Set([
  "speech",
  "transcriptions",
  "translations",
]);

function requestOf(
  gateway: Pick<Gateway, "bodies" | "metrics">,
  call: Call,
  deployment: PricedDeployment,
  { endpoint, path, headers, body, error }: Translation,
): Omit<ProviderCall, "signal" | "firstByteMs"> {
  return {
    ...headerCounter(gateway, call, deployment),
    ...(OF_ANY_TYPE.has(endpoint) ? { anyType: true } : {}),
    deployment,
    path,
    headers: withTraceContext(call, deployment, headers),
    callId: call.id,
    body: body(),
    error,
    reserve: reserveFor(gateway.bodies, call),
  };
}

/** Counts what has arrived of an answer for its call. */
export function reserveFor(
  bodies: Gateway["bodies"],
  call: Call,
): (part: Buffer) => void {
  return (part) => bodies.reserveChunk(keyOf(call), call.id, part);
}

async function answerTo(
  { providers }: Pick<Gateway, "providers">,
  { stream, kind }: Call,
  translation: Translation,
  request: ProviderCall,
  client: WaitingClient["connection"] | null,
): Promise<Answered> {
  if (stream) {
    const answer = await providers.stream(request, client);
    return { kind: "stream", translation, ...answer };
  }
  if (kind.bytes === true) {
    const answer = await providers.bytes(request);
    return { kind: "bytes", translation, ...answer };
  }
  return { kind: "whole", translation, ...(await providers.ask(request)) };
}

/** A caller's wrong key or address says nothing about the deployment. */
function ofOwnAccess(error: unknown): unknown {
  if (error instanceof UpstreamFailure) {
    error.byRequest = true;
  }
  return error;
}

function outOfTime(
  call: Call,
  deployment: PricedDeployment,
  deadlineAt: number | null,
  error: unknown,
): UpstreamFailure {
  const failure = new UpstreamFailure(
    408,
    `${deployment.apiBase} did not answer within the call's time limit: set a longer timeout`,
  );
  failure.byRequest =
    call.options.timeoutMs !== null && deadlineAt === call.deadlineAt;
  keepCharge(failure, error);
  return failure;
}

function stopped(error: unknown): UpstreamFailure {
  const failure = new UpstreamFailure(
    503,
    "the gateway is stopping and could not wait for the answer: try again",
  );
  failure.byRequest = true;
  keepCharge(failure, error);
  return failure;
}

function cancelled(reason: string, error: unknown): UpstreamFailure {
  const failure = new UpstreamFailure(CANCELLED, `cancelled: ${reason}`);
  failure.byRequest = true;
  keepCharge(failure, error);
  return failure;
}

/** The provider received the whole call and may charge for it, or has reported what it used. */
function keepCharge(failure: UpstreamFailure, error: unknown): void {
  if (error instanceof UpstreamFailure) {
    failure.mayBeCharged = error.mayBeCharged;
    failure.usage = error.usage;
  }
}

/** The call's deadline or the `request_timeout` of the attempt, whichever is earlier. */
function deadlineOf(call: Call, attemptMs: number | null): number | null {
  if (attemptMs === null) {
    return call.deadlineAt;
  }
  return Math.min(call.deadlineAt ?? Infinity, performance.now() + attemptMs);
}

/** Sets a timer only if there is a deadline. */
function startDeadline(
  deadlineAt: number | null,
  aborter: AbortController,
): NodeJS.Timeout | undefined {
  if (deadlineAt === null) {
    return undefined;
  }
  return setTimeout(
    () => aborter.abort(),
    Math.max(0, deadlineAt - performance.now()),
  );
}

/** Stops an unread answer. */
export function endUnread({
  body,
  abort,
}: Pick<StreamedAnswer, "body"> & { abort(): void }): void {
  stopReading(body);
  abort();
}
