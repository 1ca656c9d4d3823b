import type { Gateway } from "../../gateway.ts";
import { isEnabled, type PricedDeployment } from "../../routing/catalog.ts";
import type { CooldownState } from "../../routing/cooldowns.ts";
import { gauge } from "../family.ts";
import { deploymentLabels } from "./call-labels.ts";
import { total, type LitellmFamily } from "./litellm-family.ts";
import type { LitellmMetrics } from "./litellm-metrics.ts";
import type { Metric } from "./metric-labels.ts";
import { distinct, project } from "./projection.ts";

/** Attempts, fallbacks and cooldowns by deployment, and the state and the limits of each deployment. */
export function deploymentFamilies(
  gateway: Pick<Gateway, "catalog" | "router">,
  metrics: LitellmMetrics,
): readonly LitellmFamily[] {
  return [
    total(
      "litellm_deployment_total_requests",
      "Attempts at deployments.",
      metrics.attempts,
      ({ count }) => count,
    ),
    total(
      "litellm_deployment_success_responses",
      "Attempts that were answered.",
      metrics.attempts,
      ({ count, failed }) => count - failed,
    ),
    total(
      "litellm_deployment_failure_responses",
      "Attempts that failed.",
      metrics.attempts,
      ({ failed }) => failed,
    ),
    total(
      "litellm_deployment_successful_fallbacks",
      "Calls that a fallback answered.",
      metrics.successfulFallbacks,
      ({ count }) => count,
    ),
    total(
      "litellm_deployment_failed_fallbacks",
      "Fallbacks that did not answer.",
      metrics.failedFallbacks,
      ({ count }) => count,
    ),
    total(
      "litellm_deployment_cooled_down",
      "Cooldowns of deployments started on this instance.",
      metrics.cooldowns,
      ({ count }) => count,
    ),
    ...statesAndLimits(gateway),
  ];
}

function statesAndLimits(
  gateway: Pick<Gateway, "catalog" | "router">,
): readonly LitellmFamily[] {
  return [
    ofEach(
      gateway,
      "litellm_deployment_state",
      "0: healthy, 1: calls failed in the current minute, 2: cooling down.",
      ({ id }) => stateOf(gateway.router.cooldowns.stateOf(id)),
    ),
    ofEach(
      gateway,
      "litellm_deployment_tpm_limit",
      "Tokens per minute, as configured.",
      ({ tpm }) => tpm,
    ),
    ofEach(
      gateway,
      "litellm_deployment_rpm_limit",
      "Requests per minute, as configured.",
      ({ rpm }) => rpm,
    ),
  ];
}

/** A value of each deployment that can be called; null: it has none. */
function ofEach(
  gateway: Pick<Gateway, "catalog">,
  metric: Metric,
  help: string,
  value: (deployment: PricedDeployment) => number | null,
): LitellmFamily {
  return {
    metric,
    create: (labels) =>
      gauge(
        metric,
        help,
        () => {
          const samples = gateway.catalog.deployments.flatMap((deployment) => {
            const own = isEnabled(deployment) ? value(deployment) : null;
            const values = {
              ...deploymentLabels(deployment),
              model_group: deployment.alias,
            };
            return own === null
              ? []
              : [[project(values, labels), own] as const];
          });
          return distinct(samples, Math.max);
        },
        "max",
      ),
  };
}

function stateOf({ cooling, failures }: CooldownState): number {
  if (cooling !== null) {
    return 2;
  }
  return failures > 0 ? 1 : 0;
}
