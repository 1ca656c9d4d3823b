import { recordOf } from "../../core/json.ts";

/**
 * A body for DeepSeek, whose models think unless `thinking` turns it off: as efforts it takes all others than `none` (and `disable`, which
 * is LiteLLM's). Of Anthropic's `thinking` it takes the type. https://api-docs.deepseek.com/guides/thinking_mode
 */
export function withDeepSeekThinking({
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
