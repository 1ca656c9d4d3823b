import { setTimeout as sleep } from "node:timers/promises";
import { findModel, isLimitedAs, mayUse } from "../access/models.ts";
import type { Usage } from "../pricing/prices.ts";
import { inputUsage } from "../tokens/usage.ts";
import type { Gateway } from "../gateway.ts";
import { coversGuards } from "../guardrails/select.ts";
import { CallError } from "../http/errors.ts";
import { JournalFull } from "../journal/journal.ts";
import type { UpstreamFailure } from "../providers/failure.ts";
import type { ModelGroup, PricedDeployment } from "../routing/catalog.ts";
import { cooldownId } from "../routing/cooldowns.ts";
import { Route, type NoTarget, type Target } from "../routing/route.ts";
import { withTags } from "../routing/tags.ts";
import type { Taken } from "../routing/usage.ts";
import { raiseLease } from "./admit.ts";
import { CANCELLED, type Attempt } from "./attempt.ts";
import type { Call } from "./call.ts";
import { goesAsChat } from "./chat-instead.ts";
import {
  attemptOf,
  attemptHedged,
  type Chosen,
  type AnsweredAttempt,
  type Failed,
  type HedgeOptions,
} from "./hedge.ts";
import { sessionOf } from "./session.ts";
import { failureHeaders } from "./litellm-headers.ts";
import { failedCallError } from "./failed-call.ts";
import { errorTextFor } from "./hide-addresses.ts";
import { countAnswer, countFailure, countLeft } from "./litellm-counts.ts";
import { costAt, endCall, journalFurther, type RecordPorts } from "./record.ts";
import type { Answered, Sent } from "./send-attempt.ts";
import {
  NoSlot,
  queueFull,
  takeSlot,
  type SlotOptions,
  type SlotPorts,
} from "./take-slot.ts";
import { mockTranslation, translationFor } from "./translation.ts";
import { traceCooldown } from "./trace.ts";
import { WaitEnding } from "./wait-ending.ts";
import type { WaitingClient } from "./waiting-client.ts";

/** The answer of a call. */
export type Upstream = Answered & {
  readonly deployment: PricedDeployment;
  /** The call as sent: to some fallbacks with another body. */
  readonly call: Call;
  readonly attempts: readonly Attempt[];
  readonly fallbacks: number;
  readonly taken: Taken | null;
  /** Ms of waiting for slots, for providers (until a stream's first content) and between attempts. */
  readonly waitedMs: number;
  /** Ms of waiting for the slot of its local runner; null: that has none. */
  readonly queuedMs: number | null;
  /** Stops the provider's work. */
  abort(): void;
  /** Records that the deployment failed in the middle of its answer. */
  brokeOff(failure: UpstreamFailure): void;
};

/** An answer that is still arriving: events or bytes. */
export type ArrivingAnswer = Extract<Upstream, { kind: "stream" | "bytes" }>;

/** The route of a call with its first deployment. */
export interface ChosenRoute extends Chosen {
  readonly route: Route;
}

/**
 * Chooses the first deployment, and waits for a slot where it has them. Throws before the call is journaled, because no
 * provider was called: 429 when all deployments are cooling down or at their limit, and 400 naming what the provider lacks
 * when no deployment of the alias supports it.
 */
export async function chooseDeployment(
  gateway: SlotPorts & Pick<Gateway, "catalog" | "metrics" | "router">,
  call: Call,
  client: WaitingClient | null,
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
    mayRetry: async (group: ModelGroup) =>
      gateway.underWay.estimatedCost(call.id) === 0 ||
      raiseLease(gateway, call, callTo(call, group), group),
    mayFallBack: async (group: ModelGroup) =>
      !call.ownAccess &&
      mayUse(call.caller, group) &&
      coversGuards(call.guards, group) &&
      raiseLease(gateway, call, callTo(call, group), group),
  });
  const first = await route.first();
  if (!("deployment" in first)) {
    throw noDeployments(gateway, call, first);
  }
  notePassedOver(gateway, call, first.deployment);
  let target = first;
  for (;;) {
    const chosen = await chosenAt(gateway, call, target, {
      client,
      isFirst: true,
    });
    if ("sent" in chosen) {
      return { route, ...chosen };
    }
    const other =
      chosen instanceof NoSlot
        ? await route.passOver()
        : await route.otherOfGroup();
    if (other === null) {
      if (chosen instanceof NoSlot) {
        gateway.metrics.unavailable(call.group.configured, "queue");
      }
      throw chosen instanceof NoSlot ? chosen.error : chosen;
    }
    target = other;
  }
}

/** A target with the call as it is sent there, and a slot where it has them; else why it cannot take the call. */
async function chosenAt(
  gateway: SlotPorts & Pick<Gateway, "router">,
  call: Call,
  target: Target,
  options: SlotOptions,
): Promise<Chosen | NoSlot | CallError> {
  try {
    const sent = sendTo(gateway, call, target);
    const { runner } = target.deployment;
    const slot =
      runner === null
        ? null
        : await takeSlot(gateway, call, { target, sent }, runner, options);
    if (!(slot instanceof NoSlot)) {
      return { target, sent, slot };
    }
    giveBack(gateway, target);
    return slot;
  } catch (error) {
    giveBack(gateway, target);
    if (error instanceof CallError && error.kind === "invalid_request") {
      return error;
    }
    throw error;
  }
}

/** Notes the deployments that the choice passes over, for the call's row and trace; none are cooling down as a rule. */
function notePassedOver(
  { router, underWay }: Pick<Gateway, "router" | "underWay">,
  { id: callId, group, trace }: Call,
  chosen: PricedDeployment,
): void {
  if (!router.cooldowns.any()) {
    return;
  }
  const cooling = group.deployments.filter(
    (one) =>
      one !== chosen &&
      router.cooldowns.cooling(cooldownId(group, one)) !== null,
  );
  if (cooling.length > 0) {
    const ids = cooling.map(({ id }) => id);
    underWay.passedOver(callId, ids);
    trace?.passedOver(ids);
  }
}

/**
 * The deployments of a fallback that the call's tags lead to; null: there are none, or the key has limits of its own for the
 * fallback. A call counts towards the limits of the alias that was called, and would evade these.
 */
function fallbackNamed(
  { catalog, config }: Pick<Gateway, "catalog" | "config">,
  { caller, payers, userAgent }: Call,
  name: string,
): ModelGroup | null {
  const group = findModel(catalog, caller, name);
  if (
    group === null ||
    isLimitedAs(caller, name) ||
    isLimitedAs(caller, group.alias)
  ) {
    return null;
  }
  return withTags(group, { tags: payers.tags, userAgent }, config.router);
}

/** The next target that supports the call's parameters; null: there is none, no time for one, or its client has left. */
async function nextTarget(
  gateway: SlotPorts & Pick<Gateway, "router">,
  call: Call,
  route: Route,
  { failure, target }: Failed,
  client: WaitingClient | null,
): Promise<Chosen | null> {
  if (
    isLate(call.deadlineAt) ||
    call.race?.aborted === true ||
    client?.connection.destroyed === true ||
    gateway.underWay.aborted()
  ) {
    return null;
  }
  let next = await route.after(failure, target);
  while (next !== null) {
    if (isLate(call.deadlineAt, next.pauseMs)) {
      giveBack(gateway, next);
      next = await route.passOver();
      continue;
    }
    const chosen = await chosenAt(gateway, call, next, {
      client,
      isFirst: false,
    }).catch(endedWaiting);
    if (chosen === null || "sent" in chosen) {
      return chosen;
    }
    next = await route.passOver();
  }
  return null;
}

/** A call that ended while it waited for a slot ends with the failure before. */
function endedWaiting(error: unknown): null {
  if (error instanceof CallError) {
    return null;
  }
  throw error;
}

/** Of a target that was not called. */
function giveBack(gateway: Pick<Gateway, "router">, { taken }: Target): void {
  if (taken !== null) {
    gateway.router.usage.giveBack(taken);
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
  gateway: RecordPorts &
    SlotPorts &
    Pick<Gateway, "catalog" | "providers" | "router">,
  call: Call,
  { route, ...first }: ChosenRoute,
  client: WaitingClient | null,
): Promise<Upstream> {
  const attempts: Attempt[] = [];
  const options: HedgeOptions = {
    route,
    client,
    attemptsBefore: () => attempts.length,
    sendTo: (target) => sendTo(gateway, call, target),
    giveBack: (target) => giveBack(gateway, target),
    onLost(lost) {
      recordFailed(gateway, call, lost, attempts);
      route.failed(lost.failure, lost.target);
      noteOwed(gateway, lost);
    },
  };
  let chosen: Chosen = first;
  let waitedMs = 0;
  for (;;) {
    waitedMs += chosen.slot?.queuedMs ?? 0;
    const startedAt = performance.now();
    const ended = await attemptHedged(gateway, call, chosen, options);
    waitedMs += performance.now() - startedAt;
    if ("answer" in ended) {
      recordAnswered(gateway, call, route, ended.target, attempts);
      const { fallbacksTaken: fallbacks } = route;
      const tried = { attempts, fallbacks, waitedMs };
      return upstreamOf(gateway, route, ended, tried);
    }
    recordFailed(gateway, call, ended, attempts);
    const lastedMs = Math.round(performance.now() - startedAt);
    const owedBefore = gateway.underWay.estimatedCost(call.id);
    const owes = noteOwed(gateway, ended);
    const next = await nextTarget(gateway, call, route, ended, client);
    describeLast(gateway, attempts, ended.target, lastedMs);
    countLeft(gateway, call, ended.target, next?.target ?? null, attempts);
    traceCooldown(gateway, call, ended.target);
    waitedMs += next?.target.pauseMs ?? 0;
    if (next === null || !(await pause(gateway, call, next, client))) {
      const { fallbacksTaken: fallbacks } = route;
      const tried = { attempts, fallbacks, waitedMs };
      throw await giveUp(gateway, ended, tried, owedBefore);
    }
    if (owes) {
      await noteFurther(gateway, call, next);
    }
    chosen = next;
  }
}

function upstreamOf(
  gateway: FailurePorts & Pick<Gateway, "underWay">,
  route: Route,
  { target, sent, slot, answer, abort }: AnsweredAttempt,
  tried: Tried,
): Upstream {
  return {
    ...answer,
    ...tried,
    deployment: target.deployment,
    call: sent.call,
    taken: target.taken,
    queuedMs: slot?.queuedMs ?? null,
    abort,
    brokeOff(failure) {
      if (gateway.underWay.aborted()) {
        return;
      }
      failure.byRequest ||= sent.call.ownAccess;
      noteFailure(gateway, target, failure);
      route.brokeOff(failure, target);
    },
  };
}

/** Waits before a retry, if it has to; false: the call ended meanwhile, and gives back what it has taken for the retry. */
async function pause(
  gateway: SlotPorts & Pick<Gateway, "router">,
  call: Call,
  { target, slot }: Chosen,
  client: WaitingClient | null,
): Promise<boolean> {
  if (target.pauseMs === 0) {
    return true;
  }
  const end = new WaitEnding(gateway, call, client?.connection ?? null);
  try {
    await sleep(target.pauseMs, undefined, { signal: end.signal });
    return true;
  } catch {
    slot?.release();
    giveBack(gateway, target);
    return false;
  } finally {
    end.forget();
  }
}

/** Notes in the journal what failed attempts cost, as the call goes on with another deployment. */
async function noteFurther(
  gateway: Pick<Gateway, "journal" | "underWay">,
  call: Call,
  next: Chosen,
): Promise<void> {
  try {
    await journalFurther(gateway, call, [attemptOf(next)]);
  } catch (error) {
    // The call goes on with the intent that it has.
    if (!(error instanceof JournalFull)) {
      throw error;
    }
  }
}

/** Notes what a failed attempt costs; answers whether it may cost anything. */
function noteOwed(
  { underWay }: Pick<Gateway, "underWay">,
  { failure, target: { deployment }, sent: { call } }: Failed,
): boolean {
  const owed = usageOwed(call, deployment, failure);
  if (owed === null) {
    return false;
  }
  underWay.failedAtCost(call.id, costAt(deployment, owed));
  return true;
}

function recordAnswered(
  gateway: Pick<Gateway, "metrics" | "underWay">,
  call: Call,
  route: Route,
  target: Target,
  attempts: readonly Attempt[],
): void {
  const { metrics, underWay } = gateway;
  const { id } = target.deployment;
  route.answered(target);
  call.trace?.answered(call.stream ? "stream" : "whole", id);
  metrics.retried(
    call.group.configured,
    attempts.length - route.fallbacksTaken,
    route.fallbacksTaken,
  );
  underWay.answered(call.id, target.deployment);
  countAnswer(gateway, call, target, attempts);
}

type FailurePorts = Pick<Gateway, "metrics" | "runners">;

/** For the metric, and for the runner that may be gone. */
function noteFailure(
  { metrics, runners }: FailurePorts,
  { deployment }: Target,
  { status }: UpstreamFailure,
): void {
  if (status === 502 || status === 408) {
    runners.suspect(deployment);
  }
  if (status !== CANCELLED) {
    metrics.providerFailed(deployment.providerName, status);
  }
}

function recordFailed(
  gateway: FailurePorts & Pick<Gateway, "router">,
  call: Call,
  { target, slot, failure }: Failed,
  attempts: Attempt[],
): void {
  slot?.release();
  noteFailure(gateway, target, failure);
  const { status, message } = failure;
  const { id } = target.deployment;
  attempts.push({ model_id: id, status, error: message });
  call.trace?.failed(status, message, id);
  countFailure(gateway, call, target.deployment, status);
  if (target.taken !== null) {
    gateway.router.usage.correct(target.taken, 0);
  }
}

/** Adds to the last failed attempt what is known once the route has gone on. */
function describeLast(
  { router }: Pick<Gateway, "router">,
  attempts: Attempt[],
  { group, deployment }: Target,
  ms: number,
): void {
  const last = attempts.pop();
  if (last !== undefined) {
    const cooling = router.cooldowns.cooling(cooldownId(group, deployment));
    attempts.push({
      ...last,
      ms,
      ...(cooling === null ? {} : { cooling_until: cooling.until }),
    });
  }
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

/** Whether a call's time is over, or will be after a pause. */
function isLate(deadlineAt: number | null, pauseMs = 0): boolean {
  return deadlineAt !== null && Date.now() + pauseMs >= deadlineAt;
}

interface Tried {
  readonly attempts: readonly Attempt[];
  readonly fallbacks: number;
  readonly waitedMs: number;
}

async function giveUp(
  gateway: RecordPorts & Pick<Gateway, "catalog">,
  { failure, target: { deployment }, sent: { call } }: Failed,
  { attempts, fallbacks, waitedMs }: Tried,
  /** Dollars that the attempts before may cost. */
  owedBefore: number,
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
    failedAttempts: owedBefore,
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
  return failedCallError(gateway, call, failure, headers);
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
  if (cause === "queue") {
    return queueFull(group.alias, retryAfterMs).error;
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
    {
      headers: { "retry-after": String(seconds) },
      ...(cause === "unreachable" ? { status: 503 } : {}),
    },
  );
}
