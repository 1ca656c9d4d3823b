import type { PricedDeployment } from "../routing/catalog.ts";
import { recordOf } from "../../core/json.ts";

/** Kimi's later models always think. https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model */
const KIMI = /^kimi-k2\.[56]/;

/** Whether a model thinks unless `thinking` turns it off. https://api-docs.deepseek.com/guides/thinking_mode */
export function hasThinkingSwitch({
  baseModel,
  model,
  providerName,
}: PricedDeployment): boolean {
  return (
    providerName === "deepseek" ||
    (providerName === "moonshot" && KIMI.test(baseModel ?? model))
  );
}

/**
 * A body for a model with a switch for its thinking. Of efforts, DeepSeek takes all others than `none` (and `disable`, which is
 * LiteLLM's), and Kimi ignores them. Of Anthropic's `thinking` both take the type.
 */
export function withThinkingSwitch({
  thinking,
  reasoning_effort: effort,
  ...body
}: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { type } = recordOf(thinking);
  if (type === "disabled" || effort === "none" || effort === "disable") {
    return { ...body, thinking: { type: "disabled" } };
  }
  return {
    ...body,
    ...(thinking == null ? {} : { thinking: { type: "enabled" } }),
    ...(effort == null ? {} : { reasoning_effort: effort }),
  };
}
