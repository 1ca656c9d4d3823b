import type { Gateway } from "../gateway.ts";
import type { ModelGroup } from "../routing/catalog.ts";

/** Where neither the caller nor the catalogue bounds an answer: more than today's models write in one. */
const MOST_OUTPUT_TOKENS = 128_000;

/**
 * Output tokens of a call that sets no `max_tokens`: what the alias's recent answers hardly exceed; with
 * `budget_mode: strict` the most that any of its models can write.
 */
export function expectedOutput(gateway: Gateway, group: ModelGroup): number {
  if (gateway.config.general.budgetMode !== "strict")
    return gateway.tokens.outputEstimate(group.alias);
  return Math.max(
    ...group.deployments.map(
      ({ priceCard }) =>
        priceCard?.maxOutputTokens ??
        priceCard?.contextWindow ??
        MOST_OUTPUT_TOKENS,
    ),
  );
}
