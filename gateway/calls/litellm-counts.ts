import type { Gateway } from "../gateway.ts";
import type {
  LitellmMetrics,
  OriginalFailure,
} from "../metrics/litellm/litellm-metrics.ts";
import type { Target } from "../routing/route.ts";
import type { Attempt } from "./attempt.ts";
import type { Call } from "./call.ts";

/** null: LiteLLM's metrics are off, or the call is a health check, which LiteLLM does not count. */
export function litellmOf(
  { metrics }: Pick<Gateway, "metrics">,
  { kind }: Call,
): LitellmMetrics | null {
  return kind.callType === "health_check" ? null : metrics.litellm;
}

/** Counts the end of the attempts at an alias that is not the one called. */
export function countFallback(
  gateway: Pick<Gateway, "metrics">,
  call: Call,
  { deployment, group }: Target,
  isAnswered: boolean,
  attempts: readonly Attempt[],
): void {
  if (group !== call.group) {
    litellmOf(gateway, call)?.fellBack(
      call,
      deployment,
      isAnswered,
      originalFailure(call, attempts),
    );
  }
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
