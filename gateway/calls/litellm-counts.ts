import type { Gateway } from "../gateway.ts";
import type {
  LitellmMetrics,
  OriginalFailure,
} from "../metrics/litellm/litellm-metrics.ts";
import type { ProviderCall } from "../providers/provider-call.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { Target } from "../routing/route.ts";
import type { Attempt } from "./attempt.ts";
import type { Call } from "./call.ts";

// What LiteLLM's metrics count of attempts, while they are switched on.

type Counted = Pick<Gateway, "metrics">;

/** null: the metrics are off, or the call is a health check, which LiteLLM does not count. */
function metricsOf(
  { metrics }: Counted,
  { kind }: Call,
): LitellmMetrics | null {
  return kind.callType === "health_check" ? null : metrics.litellm;
}

export function countAnswer(
  gateway: Counted,
  call: Call,
  { deployment, group }: Target,
  attempts: readonly Attempt[],
): void {
  const metrics = metricsOf(gateway, call);
  metrics?.attempted(call, deployment, null);
  if (group !== call.group) {
    const failure = originalFailure(call, attempts);
    metrics?.fellBack(call, deployment, true, failure);
  }
}

export function countFailure(
  gateway: Counted,
  call: Call,
  deployment: PricedDeployment,
  status: number,
): void {
  metricsOf(gateway, call)?.attempted(call, deployment, status);
}

/** Counts a fallback that failed, when the call leaves its alias for `next` (null: for none). */
export function countLeft(
  gateway: Counted,
  call: Call,
  { deployment, group }: Target,
  next: Target | null,
  attempts: readonly Attempt[],
): void {
  if (group !== call.group && next?.group !== group) {
    const failure = originalFailure(call, attempts);
    metricsOf(gateway, call)?.fellBack(call, deployment, false, failure);
  }
}

/** What reads the limits that a provider's answer reports; without the metrics nothing does. */
export function headerCounter(
  gateway: Counted,
  call: Call,
  deployment: PricedDeployment,
): Pick<ProviderCall, "onHeaders"> {
  const metrics = metricsOf(gateway, call);
  return metrics === null
    ? {}
    : {
        onHeaders: (headers) => metrics.answeredWith(call, deployment, headers),
      };
}

/** The first failure of the alias called; null: each of its deployments was cooling down or at its limit. */
function originalFailure(
  { group }: Call,
  [first]: readonly Attempt[],
): OriginalFailure | null {
  const deployment = group.deployments.find(({ id }) => id === first?.model_id);
  return first === undefined || deployment === undefined
    ? null
    : { status: first.status, deployment };
}
