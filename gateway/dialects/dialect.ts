import type { PricedDeployment } from "../routing/catalog.ts";

/** How a deployment wants a chat body, where OpenAI's own models and everybody else differ. */
export interface Dialect {
  /** OpenAI's newer models refuse `max_tokens`; others may not know `max_completion_tokens`. */
  readonly maxTokens: "max_completion_tokens" | "max_tokens";
  readonly instructionRole: "developer" | "system";
  /** Whether `top_k` is known. */
  readonly topK: boolean;
  /** Whether an effort may be sent: models that do not reason refuse it. */
  readonly reasoning: boolean;
}

/** Models that are known to take `reasoning_effort`; `model_info.supports_reasoning` says it of others. */
const REASONING = /^(o[1-9](-|$)|gpt-[5-9]|gpt-oss|gemini-(2\.5|[3-9]))/;

/** Whether a model reasons, as far as is known. */
export function reasons(deployment: PricedDeployment): boolean {
  const model = deployment.baseModel ?? deployment.model;
  const configured = deployment.info["supports_reasoning"];
  return typeof configured === "boolean"
    ? configured
    : deployment.provider === "anthropic" ||
        REASONING.test(model.slice(model.lastIndexOf("/") + 1));
}

export function dialectOf(deployment: PricedDeployment): Dialect {
  const strict =
    deployment.providerName === "openai" || deployment.provider === "azure";
  return {
    maxTokens: strict ? "max_completion_tokens" : "max_tokens",
    instructionRole: strict ? "developer" : "system",
    topK: !strict && deployment.provider !== "gemini",
    reasoning: reasons(deployment),
  };
}
