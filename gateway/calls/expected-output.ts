import type { Gateway } from "../gateway.ts";
import { maxOutputTokens } from "../providers/anthropic-model.ts";
import type { ModelGroup, PricedDeployment } from "../routing/catalog.ts";

/** Where neither the caller nor the catalogue bounds an answer: more than today's models write in one. */
const MOST_OUTPUT_TOKENS = 128_000;

/**
 * Output tokens of a call that sets no `max_tokens`: what the alias's recent answers hardly exceed; with
 * `budget_mode: strict` the most that any of its models can write.
 */
export function expectedOutput(
  gateway: Pick<Gateway, "config" | "tokens">,
  group: ModelGroup,
): number {
  if (gateway.config.general.budgetMode !== "strict") {
    return gateway.tokens.outputEstimate(group.alias);
  }
  return Math.max(...group.deployments.map(mostOutput));
}

/** The deployment's own `max_tokens` is sent with each call that sets none. */
function mostOutput(deployment: PricedDeployment): number {
  const { defaults, priceCard } = deployment;
  const preset = defaults["max_completion_tokens"] ?? defaults["max_tokens"];
  return typeof preset === "number"
    ? preset
    : (maxOutputTokens(deployment) ??
        priceCard?.contextWindow ??
        MOST_OUTPUT_TOKENS);
}
