import type { Usage } from "../tokens/reported-usage.ts";
import { inputUsage } from "../tokens/usage.ts";
import type { Gateway } from "../gateway.ts";
import type { CallError } from "../http/errors.ts";
import { JournalFull } from "../journal/journal-writer.ts";
import type { UpstreamFailure } from "../providers/failure.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { cooldownId } from "../routing/cooldowns.ts";
import type { Target } from "../routing/route.ts";
import { CANCELLED, type Attempt } from "./attempt.ts";
import type { Call } from "./call.ts";
import { attemptOf, type Chosen, type Failed } from "./hedge.ts";
import { failureHeaders } from "./litellm-headers.ts";
import { failedCallError } from "./failed-call.ts";
import { countFailure } from "./litellm-counts.ts";
import { costAt, endCall, journalFurther, type RecordPorts } from "./record.ts";
import { traceCooldown } from "./trace.ts";

export type FailurePorts = Pick<Gateway, "metrics" | "runners">;

export function recordFailed(
  gateway: FailurePorts & Pick<Gateway, "router">,
  call: Call,
  { target, slot, failure }: Failed,
  attempts: Attempt[],
): void {
  slot?.release();
  noteFailure(gateway, target, failure);
  const { status, keptMessage: message } = failure;
  const { id } = target.deployment;
  attempts.push({ model_id: id, status, error: message });
  call.trace?.failed(status, message, id);
  countFailure(gateway, call, target.deployment, status);
  if (target.taken !== null) {
    gateway.router.usage.correct(target.taken, 0);
  }
}

/** For the metric, and for the runner that may be gone. */
export function noteFailure(
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

/** Adds to the last failed attempt, and to the trace, what is known once the route has gone on. */
export function describeLast(
  gateway: Pick<Gateway, "router">,
  call: Call,
  attempts: Attempt[],
  target: Target,
  ms: number,
): void {
  const { group, deployment } = target;
  const { cooldowns } = gateway.router;
  const last = attempts.pop();
  if (last !== undefined) {
    const cooling = cooldowns.cooling(cooldownId(group, deployment));
    attempts.push({
      ...last,
      ms,
      ...(cooling === null ? {} : { cooling_until: cooling.until }),
    });
  }
  traceCooldown(gateway, call, target);
}

/** Notes what a failed attempt costs; answers whether it may cost anything. */
export function noteOwed(
  { activeCalls }: Pick<Gateway, "activeCalls">,
  { failure, target: { deployment }, sent: { call } }: Failed,
): boolean {
  const owed = usageOwed(call, deployment, failure);
  if (owed === null) {
    return false;
  }
  activeCalls.failedAtCost(call.id, costAt(deployment, owed));
  return true;
}

/** Notes in the journal what failed attempts cost, as the call goes on with another deployment. */
export async function noteFurther(
  gateway: Pick<Gateway, "journal" | "activeCalls">,
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

/** The billed usage of a failed attempt: as reported by the provider, else the input if it received the whole call. */
function usageOwed(
  call: Call,
  deployment: PricedDeployment,
  { usage, mayBeCharged }: UpstreamFailure,
): Usage | null {
  return usage ?? (mayBeCharged ? inputUsage(call, deployment) : null);
}

export interface Tried {
  /** Those that failed. */
  readonly attempts: readonly Attempt[];
  /** Attempts at an alias after its first. */
  readonly retries: number;
  readonly fallbacks: number;
  readonly waitedMs: number;
}

export async function giveUp(
  gateway: RecordPorts & Pick<Gateway, "catalog">,
  { failure, target: { deployment }, sent: { call } }: Failed,
  { attempts, retries, fallbacks, waitedMs }: Tried,
  /** Dollars that the attempts before may cost. */
  owedBefore: number,
): Promise<CallError> {
  gateway.metrics.retried(call.group.configured, retries, fallbacks);
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
        error_message: failure.keptMessage,
      },
      attempts,
    },
  });
  const headers = failureHeaders(gateway, call, deployment, {
    retries,
    fallbacks,
  });
  if (failure.retryAfterMs !== null) {
    headers["retry-after"] = String(Math.ceil(failure.retryAfterMs / 1_000));
  }
  return failedCallError(gateway, call, failure, headers);
}
