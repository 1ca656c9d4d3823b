import { setTimeout as sleep } from "node:timers/promises";
import type { Usage } from "../tokens/reported-usage.ts";
import type { Gateway } from "../gateway.ts";
import type { UpstreamFailure } from "../providers/failure.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { Route, type Target } from "../routing/route.ts";
import type { Taken } from "../routing/usage.ts";
import type { Attempt } from "./attempt.ts";
import type { Call } from "./call.ts";
import {
  giveBack,
  nextTarget,
  sendTo,
  type ChosenRoute,
} from "./choose-deployment.ts";
import {
  describeLast,
  giveUp,
  noteFailure,
  noteFurther,
  noteOwed,
  recordFailed,
  type FailurePorts,
  type Tried,
} from "./failed-attempt.ts";
import {
  attemptHedged,
  type Chosen,
  type AnsweredAttempt,
  type HedgeOptions,
} from "./hedge.ts";
import { countAnswer, countLeft } from "./litellm-counts.ts";
import type { RecordPorts } from "./record.ts";
import type { Answered } from "./send-attempt.ts";
import type { SlotPorts } from "./take-slot.ts";
import { WaitEnding } from "./wait-ending.ts";
import {
  NOTIFY_AFTER_MS,
  waitingFor,
  type WaitingClient,
} from "./waiting-client.ts";
import { insteadOfWithheld } from "./withheld-answer.ts";

/** The answer of a call. */
export type Upstream = Answered & {
  readonly deployment: PricedDeployment;
  /** The call as sent: to some fallbacks with another body. */
  readonly call: Call;
  readonly attempts: readonly Attempt[];
  readonly retries: number;
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

type ProviderPorts = RecordPorts &
  SlotPorts &
  Pick<Gateway, "bodies" | "catalog" | "providers" | "router">;

/**
 * Sends a call to its first deployment, and after a failure along its route. When no deployment answers, the failure is
 * journaled, settled and thrown. `client` waits for a stream.
 */
export async function callProvider(
  gateway: ProviderPorts,
  call: Call,
  chosen: ChosenRoute,
  client: WaitingClient | null,
): Promise<Upstream> {
  const stopNotifying = client?.notify(
    () => waitingFor(call.group.alias),
    NOTIFY_AFTER_MS,
  );
  try {
    return await firstAnswer(gateway, call, chosen, client);
  } finally {
    stopNotifying?.();
  }
}

async function firstAnswer(
  gateway: ProviderPorts,
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
  let retries = 0;
  let waitedMs = 0;
  for (;;) {
    waitedMs += chosen.slot?.queuedMs ?? 0;
    const startedAt = performance.now();
    const ended = await attemptHedged(gateway, call, chosen, options);
    waitedMs += performance.now() - startedAt;
    if ("answer" in ended) {
      const on = { route, attempts, client };
      const other = await insteadOfWithheld(gateway, call, ended, on);
      if (other !== null) {
        chosen = other;
        continue;
      }
      const tried = { attempts, retries, waitedMs };
      recordAnswered(gateway, call, route, ended.target, tried);
      return upstreamOf(gateway, route, ended, tried);
    }
    recordFailed(gateway, call, ended, attempts);
    const lastedMs = Math.round(performance.now() - startedAt);
    const owedBefore = gateway.activeCalls.estimatedCost(call.id);
    const owes = noteOwed(gateway, ended);
    const next = await nextTarget(gateway, call, route, ended, client);
    describeLast(gateway, call, attempts, ended.target, lastedMs);
    countLeft(gateway, call, ended.target, next?.target ?? null, attempts);
    waitedMs += next?.target.pauseMs ?? 0;
    if (next === null || !(await pause(gateway, call, next, client))) {
      const { fallbacksTaken: fallbacks } = route;
      const tried = { attempts, retries, fallbacks, waitedMs };
      throw await giveUp(gateway, ended, tried, owedBefore);
    }
    if (owes) {
      await noteFurther(gateway, call, next);
    }
    retries += next.target.group === ended.target.group ? 1 : 0;
    chosen = next;
  }
}

function upstreamOf(
  gateway: FailurePorts & Pick<Gateway, "activeCalls">,
  route: Route,
  { target, sent, slot, answer, abort }: AnsweredAttempt,
  tried: Omit<Tried, "fallbacks">,
): Upstream {
  return {
    ...answer,
    ...tried,
    fallbacks: route.fallbacksTaken,
    deployment: target.deployment,
    call: sent.call,
    taken: target.taken,
    queuedMs: slot?.queuedMs ?? null,
    abort,
    brokeOff(failure) {
      if (gateway.activeCalls.aborted()) {
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

function recordAnswered(
  gateway: Pick<Gateway, "metrics" | "activeCalls">,
  call: Call,
  route: Route,
  target: Target,
  { attempts, retries }: Pick<Tried, "attempts" | "retries">,
): void {
  const { metrics, activeCalls } = gateway;
  const { id } = target.deployment;
  route.answered(target);
  call.trace?.answered(call.stream ? "stream" : "whole", id);
  metrics.retried(call.group.configured, retries, route.fallbacksTaken);
  activeCalls.answered(call.id, target.deployment);
  countAnswer(gateway, call, target, attempts);
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
