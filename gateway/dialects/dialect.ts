import { ownAddress } from "../providers/gemini-address.ts";
import { hasThinkingSwitch } from "../providers/thinking-switch.ts";
import type { PricedDeployment } from "../routing/catalog.ts";

/** How OpenAI's models and those of other providers differ in a chat body. */
export interface Dialect {
  /** OpenAI's newer models reject `max_tokens`; others may not support `max_completion_tokens`. */
  readonly maxTokens: "max_completion_tokens" | "max_tokens";
  readonly instructionRole: "developer" | "system";
  /** Whether `top_k` is supported. */
  readonly topK: boolean;
  /** Instructions are accepted as the first message only. */
  readonly leadingInstructions: boolean;
  /** Whether an effort may be sent: other models reject it. */
  readonly reasoning: boolean;
  /** Whether messages may contain files, such as PDF documents. */
  readonly files: boolean;
  /** Whether a chat with `web_search_options` has the provider search; `alone`: only one without functions. */
  readonly searches: boolean | "alone";
  /** Whether the provider fetches a file whose `file_data` is an address. */
  readonly fileAddresses: boolean;
}

/** Providers whose chat endpoints take text and images only; of unknown servers it is tried. */
const WITHOUT_FILES: ReadonlySet<string> = new Set([
  "ollama",
  "gemini",
  "groq",
  "cerebras",
  "deepseek",
  "vllm",
  "hosted_vllm",
  "lm_studio",
  "llamacpp",
]);

/** Models known to support `reasoning_effort`; others declare it with `model_info.supports_reasoning`. */
const REASONING = /^(o[1-9](-|$)|gpt-[5-9]|gpt-oss|gemini-(2\.5|[3-9]))/;

/** Names of models that do not reason, although their family does: `gpt-5-chat-latest`. */
const CHAT_ONLY = /-chat(-|$)/;

export function isChatOnly({ baseModel, model }: PricedDeployment): boolean {
  return CHAT_ONLY.test(baseModel ?? model);
}

/** Whether a model is known to reason. */
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
    (deployment.providerName === "openai" && deployment.local !== true) ||
    deployment.provider === "azure";
  const isGoogle = ownAddress(deployment) !== null;
  return {
    maxTokens: strict ? "max_completion_tokens" : "max_tokens",
    instructionRole: strict ? "developer" : "system",
    topK: !strict && deployment.provider !== "gemini",
    // Those of Anthropic and Gemini are collected by their own translation.
    leadingInstructions:
      !strict && !["anthropic", "gemini"].includes(deployment.provider),
    // These take every effort; their reasoning is streamed as it comes.
    reasoning:
      hasThinkingSwitch(deployment) ||
      (reasons(deployment) && !isChatOnly(deployment)),
    files: !WITHOUT_FILES.has(deployment.providerName) || isGoogle,
    searches: isGoogle ? "alone" : deployment.provider === "anthropic",
    fileAddresses:
      deployment.provider === "anthropic" ||
      deployment.providerName === "openrouter",
  };
}

/**
 * The only name by which a chat may limit its answer: OpenAI's reasoning models reject the old one, Mistral rejects the new one, and
 * Ollama ignores it. null: the server reads both.
 */
export function limitNameOf(
  deployment: PricedDeployment,
): Dialect["maxTokens"] | null {
  const { maxTokens } = dialectOf(deployment);
  return maxTokens === "max_tokens" || reasons(deployment) ? maxTokens : null;
}

/** Models that take an effort above `high`: https://developers.openai.com/api/docs/guides/reasoning */
const ABOVE_HIGH = /^gpt-(5\.1-codex-max|5\.[2-9]|[6-9])/;

/** One of Anthropic's efforts as a model takes it; OpenRouter does so for each of its models. */
export function effortFor(
  { baseModel, model, providerName }: PricedDeployment,
  effort: string,
): string {
  if (effort !== "xhigh" && effort !== "max") {
    return effort;
  }
  return providerName === "openrouter" || ABOVE_HIGH.test(baseModel ?? model)
    ? "xhigh"
    : "high";
}

/** Models that cannot answer without reasoning, and reject `none`; those of OpenAI are known where their bodies are written. */
const ALWAYS_REASONING = /gpt-oss|gemini-(2\.5-pro|[3-9]|.*latest)/;

/** The effort of a model that is asked not to think: the least that it takes. */
export function leastEffort(deployment: PricedDeployment): string {
  const { baseModel, model, provider } = deployment;
  if (!ALWAYS_REASONING.test(baseModel ?? model)) {
    return "none";
  }
  // Gemini takes it for each model as the least: https://ai.google.dev/gemini-api/docs/openai
  return provider === "gemini" ? "minimal" : "low";
}

/** OpenAI's effort for a budget of thinking, in tokens. */
export function effortOfBudget(tokens: number): string {
  return tokens <= 2_048 ? "low" : tokens <= 8_192 ? "medium" : "high";
}
