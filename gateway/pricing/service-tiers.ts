import type { TierPrice } from "./price-card.ts";

/** What multiplies the standard token prices of a model; the catalogue has standard prices only. */
interface PublishedFactor {
  /** The catalogue's name of the provider. */
  readonly provider: string;
  readonly tier: string;
  readonly factor: number;
  /** The catalogue's names of the models. */
  readonly models: RegExp;
}

/**
 * Multiples that providers publish. Sources:
 * https://developers.openai.com/api/docs/guides/flex-processing (Batch API rates, which are half the standard ones),
 * https://openai.com/api-priority-processing,
 * https://learn.microsoft.com/azure/foundry/openai/how-to/flex-processing,
 * https://ai.google.dev/gemini-api/docs/pricing, https://console.groq.com/docs/flex-processing,
 * https://platform.claude.com/docs/en/build-with-claude/fast-mode,
 * https://platform.claude.com/docs/en/about-claude/pricing (batch; data residency).
 */
const PUBLISHED: readonly PublishedFactor[] = [
  ...["openai", "azure", "google"].flatMap((provider) =>
    ["flex", "batch"].map((tier) => ({
      provider,
      tier,
      factor: 0.5,
      models: /^/,
    })),
  ),
  { provider: "groq", tier: "flex", factor: 1, models: /^/ },
  ...priority(2.5, /^gpt-5\.5$/),
  ...priority(2, /^gpt-5(\.[124](-mini)?)?$|^gpt-4\.1-nano$/),
  ...priority(1.8, /^gpt-5-mini$/),
  ...priority(1.75, /^gpt-4\.1(-mini)?$|^gpt-4o-2024-05-13$|^o3$/),
  ...priority(1.7, /^gpt-4o$/),
  ...priority(5 / 3, /^gpt-4o-mini$/),
  ...priority(2 / 1.1, /^o4-mini$/),
  {
    provider: "google",
    tier: "priority",
    factor: 1.8,
    models: /^gemini-3\.[78]-flash$/,
  },
  { provider: "anthropic", tier: "batch", factor: 0.5, models: /^/ },
  {
    provider: "anthropic",
    tier: "fast",
    factor: 6,
    models: /^claude-opus-4-[67]$/,
  },
  {
    provider: "anthropic",
    tier: "fast",
    factor: 2,
    models: /^claude-opus-(4-8|5|5-5)$/,
  },
  {
    provider: "anthropic",
    tier: "us",
    factor: 1.1,
    models: /^claude-(opus-4-[6-9]|sonnet-4-[6-9]|[a-z]+-[5-9])/,
  },
];

function priority(factor: number, models: RegExp): readonly PublishedFactor[] {
  return [{ provider: "openai", tier: "priority", factor, models }];
}

/** The published tiers of a model, by the catalogue's names. */
export function publishedTiers(
  providerId: string,
  modelId: string,
): Readonly<Record<string, TierPrice>> {
  return Object.fromEntries(
    PUBLISHED.filter(
      ({ provider, models }) => provider === providerId && models.test(modelId),
    ).map(({ tier, factor }) => [tier, factor]),
  );
}

/** Names of tiers whose tokens cost what the standard ones cost. */
const STANDARD: ReadonlySet<string> = new Set([
  "",
  "auto",
  "default",
  "standard",
  "standard_only",
  "on_demand",
  "scale",
  "global",
  "not_available",
]);

/** Tiers other than the standard one, as a provider names them in its answer (or a caller in a request). */
export function tiersIn({
  service_tier,
  speed,
  inference_geo,
}: Readonly<Record<string, unknown>>): readonly string[] {
  return [service_tier, speed, inference_geo].filter(
    (name): name is string => typeof name === "string" && !STANDARD.has(name),
  );
}
