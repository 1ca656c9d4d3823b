import type { Call } from "../calls/call.ts";
import type { AnswerFacts } from "../providers/wire.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { inputOnly, type Usage } from "./prices.ts";
import type { TokenCounter } from "./tokens.ts";

/** What a call used: as the provider reports it, else counted. What was reported teaches the counter and the estimates. */
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
    return usage;
  }
  return {
    ...(facts.inputUsage ?? inputOnly(call.inputTokens)),
    outputTokens:
      facts.text === ""
        ? 0
        : tokens.countText(
            facts.text,
            deployment.baseModel ?? deployment.model,
          ),
  };
}
