import type { Call } from "../calls/call.ts";
import type { AnswerFacts } from "../providers/wire.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { inputOnly, type Usage } from "../pricing/prices.ts";
import { tiersIn } from "../pricing/service-tiers.ts";
import type { TokenCounter } from "./tokens.ts";

/**
 * What a call used: as the provider reports it, else counted. What was reported teaches the counter and the estimates.
 * The service tier is the one that the provider names; if its answer broke off before it named one, the requested one.
 */
export function usageOf(
  tokens: TokenCounter,
  call: Call,
  deployment: PricedDeployment,
  facts: AnswerFacts,
): Usage {
  const { usage } = facts;
  if (usage !== null) {
    tokens.learn(deployment.id, call.inputTokens, usage.inputTokens);
    tokens.recordOutput(call.group.alias, usage.outputTokens);
    return withTiers(usage, usage.tiers ?? facts.tiers ?? []);
  }
  const counted = {
    ...(facts.inputUsage ?? inputOnly(call.inputTokens)),
    outputTokens:
      facts.text === ""
        ? 0
        : tokens.countText(
            facts.text,
            deployment.baseModel ?? deployment.model,
          ),
  };
  return withTiers(
    counted,
    counted.tiers ?? facts.tiers ?? askedTiers(call, deployment),
  );
}

/** The service tiers that a call requests, as far as the deployment's provider has them. */
export function askedTiers(
  { body }: Pick<Call, "body">,
  { provider, defaults }: PricedDeployment,
): readonly string[] {
  // Gemini's compatible endpoint and Ollama have none: the field is left out or ignored.
  if (provider === "gemini" || provider === "ollama") {
    return [];
  }
  return tiersIn({ ...defaults, ...body });
}

/** The bill of a call of which the provider reported nothing: its counted input. */
export function inputUsage(
  call: Pick<Call, "body" | "inputTokens">,
  deployment: PricedDeployment,
): Usage {
  return inputOnly(call.inputTokens, askedTiers(call, deployment));
}

function withTiers(usage: Usage, tiers: readonly string[]): Usage {
  return tiers.length === 0 ? usage : { ...usage, tiers };
}
