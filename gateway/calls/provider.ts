import { setTimeout as sleep } from "node:timers/promises";
import { findModel, mayUse } from "../access/models.ts";
import type { Usage } from "../pricing/prices.ts";
import { inputUsage } from "../tokens/usage.ts";
import type { Gateway } from "../gateway.ts";
import { coversGuards } from "../guardrails/select.ts";
import { CallError } from "../http/errors.ts";
import type { ProviderCall } from "../providers/provider-call.ts";
import type { StreamedAnswer } from "../providers/streamed-answer.ts";
import { UpstreamFailure } from "../providers/failure.ts";
import type { StreamClient } from "../providers/stream-start.ts";
import type { ModelGroup, PricedDeployment } from "../routing/catalog.ts";
import { cooldownId } from "../routing/cooldowns.ts";
import { Route, type NoTarget, type Target } from "../routing/route.ts";
import { withTags } from "../routing/tags.ts";
import type { Taken } from "../routing/usage.ts";
import type { Attempt } from "./attempt.ts";
import { raiseLease } from "./admit.ts";
import type { Call } from "./call.ts";
import { goesAsChat, withChatInstead } from "./chat-instead.ts";
import { sessionOf } from "./session.ts";
import { failureHeaders } from "./litellm-headers.ts";
import { errorTextFor } from "./hide-addresses.ts";
import {
  countAnswer,
  countFailure,
  countLeft,
  headerCounter,
} from "./litellm-counts.ts";
import { mockAnswer } from "./mock.ts";
import { costAt, endCall, type RecordPorts } from "./record.ts";
import {
  mockTranslation,
  translationFor,
  type Translation,
} from "./translation.ts";
import {
  traceAttempt,
  traceCooldown,
  traceCooling,
  withTraceContext,
} from "./trace.ts";

/** An answer of a deployment: whole, or a stream that has started. */
export type Upstream = {
  readonly deployment: PricedDeployment;
  /** The call as sent: to some fallbacks with another body. */
  readonly call: Call;
  readonly attempts: readonly Attempt[];
  readonly fallbacks: number;
  readonly taken: Taken | null;
  /** Ms of waiting for providers (until a stream's first byte) and between attempts. */
  readonly waitedMs: number;
  readonly contentType: string;
  readonly translation: Translation;
  /** Stops the provider's work. */
  abort(): void;
} & (
  | { readonly kind: "whole"; readonly body: Buffer }
  | ({ readonly kind: "stream" | "bytes" } & Pick<
      StreamedAnswer,
      "body" | "chunks"
    >)
);

/** An answer that is still arriving: events or bytes. */
export type ArrivingAnswer = Extract<Upstream, { kind: "stream" | "bytes" }>;

/** A call as it is sent to one deployment. */
interface Sent {
  readonly call: Call;
  readonly translation: Translation;
}

/** The route of a call with its first deployment. */
export interface ChosenRoute {
  readonly route: Route;
  readonly first: Target;
  /** To the first deployment. */
  readonly sent: Sent;
}

/**
 * Chooses the first deployment. Throws 429 when all deployments are cooling down or at their limit, and 400 naming what the
 * provider lacks when no deployment of the alias supports it: before the call is journaled, because no provider was called.
 */
export async function chooseDeployment(
  gateway: Pick<
    Gateway,
    "catalog" | "config" | "limits" | "metrics" | "router" | "tokens"
  >,
  call: Call,
): Promise<ChosenRoute> {
  const route = new Route(gateway.router, {
    group: call.group,
    size: {
      inputTokens: call.inputTokens,
      outputTokens: call.outputTokens,
      measure: call.measure,
    },
    session: () => sessionOf(call, gateway.config.router.sessionAffinity),
    numRetries: call.options.numRetries,
    fallbacks: call.fallbacks.names,
    find: (name) => fallbackNamed(gateway, call, name),
    mayFallBack: async (group: ModelGroup) =>
      !call.ownAccess &&
      mayUse(call.caller, group) &&
      coversGuards(call.guards, group) &&
      raiseLease(gateway, call, callTo(call, group), group),
  });
  let first = await route.first();
  if (!("deployment" in first)) {
    throw noDeployments(gateway, call, first);
  }
  traceCooling(gateway, call);
  for (;;) {
    try {
      return { route, first, sent: sendTo(gateway, call, first) };
    } catch (error) {
      giveBack(gateway, first);
      const other: Target | null = await route.otherOfGroup();
      if (other === null) {
        throw error;
      }
      first = other;
    }
  }
}

/** The deployments of a fallback that the call's tags lead to; null: there are none. */
function fallbackNamed(
  { catalog, config }: Pick<Gateway, "catalog" | "config">,
  { caller, payers, userAgent }: Call,
  name: string,
): ModelGroup | null {
  const group = findModel(catalog, caller, name);
  return (
    group && withTags(group, { tags: payers.tags, userAgent }, config.router)
  );
}

/** The next target that supports the call's parameters; null: there is none, or no time for one. */
async function nextTarget(
  gateway: Pick<Gateway, "config" | "router" | "underWay">,
  call: Call,
  route: Route,
  failure: UpstreamFailure,
): Promise<Omit<ChosenRoute, "route"> | null> {
  if (
    isLate(call.deadlineAt) ||
    call.race?.aborted === true ||
    gateway.underWay.aborted()
  ) {
    return null;
  }
  let next = await route.after(failure);
  while (next !== null) {
    try {
      return { first: next, sent: sendTo(gateway, call, next) };
    } catch (error) {
      if (!(error instanceof CallError)) {
        throw error;
      }
      giveBack(gateway, next);
      next = await route.passOver();
    }
  }
  return null;
}

function giveBack(gateway: Pick<Gateway, "router">, { taken }: Target): void {
  if (taken !== null) {
    gateway.router.usage.correct(taken, 0);
  }
}

/** A call with what the caller sends to a fallback instead. */
function callTo(call: Call, group: ModelGroup): Call {
  const replacement =
    group === call.group
      ? undefined
      : call.fallbacks.replacements.get(group.alias);
  return replacement === undefined ? call : { ...call, ...replacement };
}

/** A fallback is another model: it gets the whole list of embeddings, including items that are cached for the alias. */
function sendTo(
  gateway: Pick<Gateway, "config" | "router">,
  routed: Call,
  { deployment, group }: Target,
): Sent {
  const call = callTo(routed, group);
  const whole = group === routed.group ? call : (call.whole ?? call);
  const translation =
    call.options.mock.response === null
      ? translationFor(gateway.config, whole, deployment, {
          asChat: goesAsChat(gateway, whole, deployment),
        })
      : mockTranslation(gateway.config, whole, deployment);
  return { call, translation };
}

/**
 * Sends a call to its first deployment, and after a failure along its route. When no deployment answers, the failure is
 * journaled, settled and thrown. `client` waits for a stream.
 */
export async function callProvider(
  gateway: RecordPorts & Pick<Gateway, "catalog" | "providers" | "router">,
  call: Call,
  chosen: ChosenRoute,
  client: StreamClient | null,
): Promise<Upstream> {
  const { route } = chosen;
  const attempts: Attempt[] = [];
  let { first: target, sent } = chosen;
  let waitedMs = 0;
  for (;;) {
    const aborter = new AbortController();
    gateway.underWay.endsBy(call.id, () => aborter.abort());
    const startedAt = performance.now();
    try {
      const answer = await attempt(
        gateway,
        sent,
        target,
        attempts.length,
        aborter,
        client,
      );
      recordAnswered(gateway, call, route, target, attempts);
      return {
        ...answer,
        deployment: target.deployment,
        call: sent.call,
        attempts,
        taken: target.taken,
        fallbacks: route.fallbacksTaken,
        waitedMs: waitedMs + performance.now() - startedAt,
        abort: () => aborter.abort(),
      };
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) {
        throw error;
      }
      const { deployment } = target;
      recordFailed(gateway, call, target, error, attempts);
      waitedMs += performance.now() - startedAt;
      const next = await nextTarget(gateway, call, route, error);
      countLeft(gateway, call, target, next?.first ?? null, attempts);
      traceCooldown(gateway, call, target);
      if (next === null) {
        const { fallbacksTaken: fallbacks } = route;
        const tried = { attempts, fallbacks, waitedMs };
        throw await giveUp(gateway, sent.call, deployment, error, tried);
      }
      noteOwed(gateway, sent.call, deployment, error);
      ({ first: target, sent } = next);
      waitedMs += target.pauseMs;
      if (target.pauseMs > 0) {
        await sleep(target.pauseMs);
      }
    }
  }
}

/** Notes what a failed attempt costs: the call goes on with another deployment. */
function noteOwed(
  { underWay }: Pick<Gateway, "underWay">,
  call: Call,
  deployment: PricedDeployment,
  failure: UpstreamFailure,
): void {
  const owed = usageOwed(call, deployment, failure);
  if (owed !== null) {
    underWay.failedAtCost(call.id, costAt(deployment, owed));
  }
}

function recordAnswered(
  gateway: Pick<Gateway, "metrics" | "underWay">,
  call: Call,
  route: Route,
  target: Target,
  attempts: readonly Attempt[],
): void {
  const { metrics, underWay } = gateway;
  route.answered();
  call.trace?.answered(call.stream ? "stream" : "whole");
  metrics.retried(
    call.group.configured,
    attempts.length - route.fallbacksTaken,
    route.fallbacksTaken,
  );
  underWay.answered(call.id, target.deployment);
  countAnswer(gateway, call, target, attempts);
}

function recordFailed(
  gateway: Pick<Gateway, "metrics" | "router">,
  call: Call,
  target: Target,
  { status, message }: UpstreamFailure,
  attempts: Attempt[],
): void {
  const { id, providerName } = target.deployment;
  attempts.push({ model_id: id, status, error: message });
  call.trace?.failed(status, message);
  gateway.metrics.providerFailed(providerName, status);
  countFailure(gateway, call, target.deployment, status);
  giveBack(gateway, target);
}

/** Replaces the estimated tokens in a deployment's usage of the minute by the real ones. */
export function correctUsage(
  gateway: Pick<Gateway, "router">,
  { taken }: Upstream,
  { inputTokens, outputTokens }: Usage,
): void {
  if (taken !== null) {
    gateway.router.usage.correct(taken, inputTokens + outputTokens);
  }
}

type Answered = { readonly translation: Translation } & (
  | Pick<Extract<Upstream, { kind: "whole" }>, AnsweredFields>
  | Pick<ArrivingAnswer, AnsweredFields | "chunks">
);
type AnsweredFields = "kind" | "body" | "contentType";

async function attempt(
  gateway: Pick<
    Gateway,
    "config" | "metrics" | "providers" | "router" | "underWay"
  >,
  { call, translation }: Sent,
  target: Target,
  attemptsBefore: number,
  aborter: AbortController,
  client: StreamClient | null,
): Promise<Answered> {
  const { deployment } = target;
  const { signal } = aborter;
  traceAttempt(call, target);
  const mocked = mockAnswer(call, target, attemptsBefore);
  if (mocked !== null) {
    return { ...mocked, translation };
  }
  const { observations } = gateway.router;
  const startedAt = performance.now();
  let latencyMs: number | null = null;
  observations.started(deployment.id);
  const deadlineAt = deadlineOf(call, gateway.config.timeouts.requestMs);
  const deadline = startDeadline(deadlineAt, aborter);
  const leaveRace = endWith(call.race, aborter);
  try {
    const send = (used: Translation): Promise<Answered> =>
      answerTo(
        gateway,
        call,
        used,
        { ...requestOf(gateway, call, deployment, used), signal },
        client,
      );
    const read = await withChatInstead(
      gateway,
      call,
      deployment,
      translation,
      send,
    );
    latencyMs = performance.now() - startedAt;
    return read;
  } catch (error) {
    const failure = !aborter.signal.aborted
      ? error
      : gateway.underWay.aborted()
        ? stopped(error)
        : call.race?.aborted === true
          ? outrun(error, call.race)
          : outOfTime(call, deployment, deadlineAt, error);
    throw call.ownAccess ? ofOwnAccess(failure) : failure;
  } finally {
    clearTimeout(deadline);
    leaveRace();
    observations.ended(deployment.id, latencyMs);
  }
}

function requestOf(
  gateway: Pick<Gateway, "metrics">,
  call: Call,
  deployment: PricedDeployment,
  { path, headers, body, error }: Translation,
): Omit<ProviderCall, "signal"> {
  return {
    ...headerCounter(gateway, call, deployment),
    deployment,
    path,
    headers: withTraceContext(call, headers),
    callId: call.id,
    body: body(),
    error,
  };
}

async function answerTo(
  { providers }: Pick<Gateway, "providers">,
  { stream, kind }: Call,
  translation: Translation,
  request: ProviderCall,
  client: StreamClient | null,
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
  failure.mayBeCharged = wasSent(error);
  return failure;
}

function stopped(error: unknown): UpstreamFailure {
  const failure = new UpstreamFailure(
    503,
    "the gateway is stopping and could not wait for the answer: try again",
  );
  failure.byRequest = true;
  failure.mayBeCharged = wasSent(error);
  return failure;
}

/** Aborts an attempt when another model has answered; returns how to stop waiting for that. */
function endWith(
  race: AbortSignal | null,
  aborter: AbortController,
): () => void {
  const abort = () => aborter.abort();
  race?.addEventListener("abort", abort);
  if (race?.aborted === true) {
    abort();
  }
  return () => race?.removeEventListener("abort", abort);
}

function outrun(error: unknown, { reason }: AbortSignal): UpstreamFailure {
  const failure = new UpstreamFailure(499, `cancelled: ${String(reason)}`);
  failure.byRequest = true;
  failure.mayBeCharged = wasSent(error);
  return failure;
}

/** The provider received the whole call and may charge for it. */
function wasSent(error: unknown): boolean {
  return error instanceof UpstreamFailure && error.mayBeCharged;
}

/** The call's deadline or the `request_timeout` of the attempt, whichever is earlier. */
function deadlineOf(call: Call, attemptMs: number | null): number | null {
  if (attemptMs === null) {
    return call.deadlineAt;
  }
  return Math.min(call.deadlineAt ?? Infinity, Date.now() + attemptMs);
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
    Math.max(0, deadlineAt - Date.now()),
  );
}

function isLate(deadlineAt: number | null): boolean {
  return deadlineAt !== null && Date.now() >= deadlineAt;
}

interface Tried {
  readonly attempts: readonly Attempt[];
  readonly fallbacks: number;
  readonly waitedMs: number;
}

async function giveUp(
  gateway: RecordPorts & Pick<Gateway, "catalog">,
  call: Call,
  deployment: PricedDeployment,
  failure: UpstreamFailure,
  { attempts, fallbacks, waitedMs }: Tried,
): Promise<CallError> {
  const { message } = failure;
  gateway.metrics.retried(
    call.group.configured,
    attempts.length - 1 - fallbacks,
    fallbacks,
  );
  await endCall(gateway, call, {
    status: "failure",
    deployment,
    usage: usageOwed(call, deployment, failure),
    estimated: failure.usage === null && failure.mayBeCharged,
    firstTokenAt: null,
    responseId: null,
    cached: null,
    waitedMs,
    metadata: {
      error_information: {
        error_code: String(failure.status),
        error_message: message,
      },
      attempts,
    },
  });
  const headers = failureHeaders(gateway, call, deployment, {
    retries: attempts.length - 1 - fallbacks,
    fallbacks,
  });
  if (failure.retryAfterMs !== null) {
    headers["retry-after"] = String(Math.ceil(failure.retryAfterMs / 1_000));
  }
  return new CallError(
    "upstream_error",
    `${call.group.alias}: ${errorTextFor(call.caller, gateway, message)}`,
    { status: failure.status, headers },
  );
}

/** The billed usage of a failed attempt: as reported by the provider, else the input if it received the whole call. */
function usageOwed(
  call: Call,
  deployment: PricedDeployment,
  { usage, mayBeCharged }: UpstreamFailure,
): Usage | null {
  return usage ?? (mayBeCharged ? inputUsage(call, deployment) : null);
}

/** Counted as a metric: a rejected call has no row that would show it. */
function noDeployments(
  gateway: Pick<Gateway, "catalog" | "metrics" | "router">,
  { caller, group, kind }: Call,
  { cause, retryAfterMs, reason }: NoTarget,
): CallError {
  if (kind.callType !== "health_check") {
    gateway.metrics.unavailable(group.configured, cause);
    if (cause === "cooldown") {
      for (const deployment of group.deployments) {
        gateway.router.cooldowns.rejected(cooldownId(group, deployment));
      }
    }
  }
  const why = `No deployment of ${group.alias} is available (${errorTextFor(caller, gateway, reason)}).`;
  if (retryAfterMs === Infinity) {
    return new CallError(
      "no_deployments_available",
      `${why} Its operator can raise the budget (\`provider_budget_config\`).`,
    );
  }
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1_000));
  return new CallError(
    "no_deployments_available",
    `${why} Try again in ${seconds} s.`,
    { headers: { "retry-after": String(seconds) } },
  );
}
