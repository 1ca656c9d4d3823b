import type { Gateway } from "../gateway.ts";
import { contextWindowOf } from "../pricing/token-limits.ts";
import { maxOutputTokens } from "../providers/anthropic-model.ts";
import type { ModelGroup, PricedDeployment } from "../routing/catalog.ts";

/** When neither the caller nor the catalogue limits an answer: more than current models write. */
const MAX_OUTPUT_TOKENS = 128_000;

/**
 * Output tokens of a call without `max_tokens`: an upper estimate by the alias's recent answers; with
 * `budget_mode: strict` the maximum of all its models.
 */
export function expectedOutput(
  gateway: Pick<Gateway, "config" | "tokens">,
  group: ModelGroup,
): number {
  if (gateway.config.general.budgetMode !== "strict") {
    return gateway.tokens.outputEstimate(group.alias);
  }
  return Math.max(...group.deployments.map(maxOutput));
}

/** The deployment's own `max_tokens` is sent with calls that set none. */
function maxOutput(deployment: PricedDeployment): number {
  const { defaults } = deployment;
  const preset = defaults["max_completion_tokens"] ?? defaults["max_tokens"];
  return typeof preset === "number"
    ? preset
    : (maxOutputTokens(deployment) ??
        contextWindowOf(deployment) ??
        MAX_OUTPUT_TOKENS);
}
