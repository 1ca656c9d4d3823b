import type { Gateway } from "../gateway.ts";
import { contextWindowOf } from "../pricing/token-limits.ts";
import { maxOutputTokens } from "../providers/anthropic-model.ts";
import type { ModelGroup, PricedDeployment } from "../routing/catalog.ts";

/** When neither the caller nor the catalogue limits an answer: more than current models write. */
const MAX_OUTPUT_TOKENS = 128_000;

/**
 * Output tokens of a call without `max_tokens`: an upper estimate by the alias's recent answers, at most what its deployments ask for;
 * with `budget_mode: strict` the maximum of all its models.
 */
export function expectedOutput(
  gateway: Pick<Gateway, "config" | "tokens">,
  group: ModelGroup,
): number {
  if (gateway.config.general.budgetMode !== "strict") {
    const limits = group.deployments.map(
      (deployment) => ownLimit(deployment) ?? Infinity,
    );
    return Math.min(
      gateway.tokens.outputEstimate(group.alias),
      Math.max(...limits),
    );
  }
  return Math.max(...group.deployments.map(maxOutput));
}

function maxOutput(deployment: PricedDeployment): number {
  return (
    ownLimit(deployment) ??
    maxOutputTokens(deployment) ??
    contextWindowOf(deployment) ??
    MAX_OUTPUT_TOKENS
  );
}

/** The deployment's own `max_tokens`, which is sent with calls that set none; null: it has none. */
function ownLimit({ defaults }: PricedDeployment): number | null {
  const limit = defaults["max_completion_tokens"] ?? defaults["max_tokens"];
  return typeof limit === "number" ? limit : null;
}
