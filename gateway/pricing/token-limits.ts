import type { PriceCard } from "./price-card.ts";

type TokenLimits = Pick<PriceCard, "maxOutputTokens" | "contextWindow">;

/** The limits of a model under LiteLLM's names: of a file of prices, or as a `model_info` declares them. */
export function tokenLimitsOf(
  entry: Readonly<Record<string, unknown>>,
): TokenLimits {
  return {
    maxOutputTokens:
      limit(entry["max_output_tokens"]) ?? limit(entry["max_tokens"]),
    contextWindow: limit(entry["max_input_tokens"]),
  };
}

/** Of a deployment: what its `model_info` declares, else what its prices say; null: unknown. */
export function contextWindowOf({
  info,
  priceCard,
}: {
  readonly info: Readonly<Record<string, unknown>>;
  readonly priceCard: TokenLimits | null;
}): number | null {
  return tokenLimitsOf(info).contextWindow ?? priceCard?.contextWindow ?? null;
}

/** The largest of the known numbers; null: none is known. */
export function largest(numbers: readonly (number | null)[]): number | null {
  const known = numbers.filter((number) => number !== null);
  return known.length === 0 ? null : Math.max(...known);
}

function limit(value: unknown): number | null {
  return typeof value === "number" && value > 0 ? value : null;
}
