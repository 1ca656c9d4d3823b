/** What Ollama takes instead of efforts that it rejects; `disable` is LiteLLM's. */
const NEAREST: ReadonlyMap<unknown, string> = new Map([
  ["disable", "none"],
  ["minimal", "low"],
  ["xhigh", "high"],
  ["max", "high"],
]);

/**
 * A body for Ollama, which has `think` in its own API only, and takes the efforts `none`, `low`, `medium` and `high`. Models that can
 * think do so without either. https://docs.ollama.com/api/openai-compatibility
 */
export function withOllamaEffort({
  think,
  ...body
}: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const asked =
    body["reasoning_effort"] ??
    (think === false ? "none" : think === true ? null : think);
  return asked == null
    ? body
    : { ...body, reasoning_effort: NEAREST.get(asked) ?? asked };
}
