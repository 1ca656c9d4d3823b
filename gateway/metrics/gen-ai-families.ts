import { histogram, type Family } from "./family.ts";
import type { GenAiMetrics } from "./gen-ai.ts";

/** The families of OpenTelemetry's GenAI client metrics. */
export function ofGenAi(
  metrics: Pick<GenAiMetrics, "observed">,
): readonly Family[] {
  return [
    histogram(
      "gen_ai_client_operation_duration_seconds",
      "Duration of calls that a provider answered (OpenTelemetry's gen_ai.client.operation.duration).",
      () =>
        metrics.observed().map(({ labels, duration }) => [labels, duration]),
    ),
    histogram(
      "gen_ai_client_token_usage",
      "Tokens of successful calls that a provider answered (OpenTelemetry's gen_ai.client.token.usage).",
      () =>
        metrics.observed().flatMap(({ labels, tokens }) =>
          tokens === null
            ? []
            : [
                [{ ...labels, gen_ai_token_type: "input" }, tokens.input],
                [{ ...labels, gen_ai_token_type: "output" }, tokens.output],
              ],
        ),
    ),
  ];
}
