import type { PricedDeployment } from "../routing/catalog.ts";

export function isMistral({ providerName }: PricedDeployment): boolean {
  return providerName === "mistral" || providerName === "codestral";
}

/** Fields of OpenAI's that do not affect the answer, and that Mistral rejects, as any that it does not know. */
const HINTS = new Set([
  "user",
  "store",
  "safety_identifier",
  "service_tier",
  "prompt_cache_options",
  "prompt_cache_retention",
]);

/** A body with the names of Mistral's API. https://docs.mistral.ai/api */
export function forMistral(
  body: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const { seed, ...rest } = body;
  const sent = Object.fromEntries(
    Object.entries(rest).filter(([name]) => !HINTS.has(name)),
  );
  return seed == null ? sent : { random_seed: seed, ...sent };
}
