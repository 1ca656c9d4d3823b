import { operationOf, providerOf } from "../tracing/gen-ai-names.ts";
import type { EndedCall } from "./call-metrics.ts";
import { histogram, type Family, type Labels } from "./family.ts";
import { createHistogram, type Histogram } from "./histogram.ts";

/** Bounds that the GenAI conventions advise, in seconds and in tokens. */
const DURATIONS = Array.from({ length: 14 }, (_, at) => 0.01 * 2 ** at);
const TOKENS = Array.from({ length: 14 }, (_, at) => 4 ** at);

interface Observed {
  readonly labels: Labels;
  readonly duration: Histogram;
  /** null: of failed calls. */
  readonly tokens: {
    readonly input: Histogram;
    readonly output: Histogram;
  } | null;
}

/** OpenTelemetry's GenAI client metrics of calls that a provider has answered, under the names they have in Prometheus. */
export class GenAiMetrics {
  readonly #observed = new Map<string, Observed>();

  /** `alias` is the bounded label of the call's alias. */
  ended(alias: string, call: EndedCall): void {
    if (call.provider === "") {
      return;
    }
    const { duration, tokens } = this.#of(alias, call);
    duration.observe(call.durationMs / 1_000);
    tokens?.input.observe(call.inputTokens);
    tokens?.output.observe(call.outputTokens);
  }

  families(): readonly Family[] {
    return [
      histogram(
        "gen_ai_client_operation_duration_seconds",
        "Duration of calls that a provider answered (OpenTelemetry's gen_ai.client.operation.duration).",
        () =>
          [...this.#observed.values()].map(({ labels, duration }) => [
            labels,
            duration,
          ]),
      ),
      histogram(
        "gen_ai_client_token_usage",
        "Tokens of successful calls that a provider answered (OpenTelemetry's gen_ai.client.token.usage).",
        () =>
          [...this.#observed.values()].flatMap(({ labels, tokens }) =>
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

  #of(alias: string, { provider, callType, status }: EndedCall): Observed {
    // Several types of calls are one operation: a series must not occur twice.
    const operation = operationOf(callType);
    const name = `${alias}|${provider}|${operation}|${status}`;
    const known = this.#observed.get(name);
    if (known !== undefined) {
      return known;
    }
    const failed = status === "failure";
    const fresh: Observed = {
      labels: {
        gen_ai_operation_name: operation,
        gen_ai_provider_name: providerOf(provider),
        gen_ai_request_model: alias,
        ...(failed ? { error_type: "_OTHER" } : {}),
      },
      duration: createHistogram(DURATIONS),
      tokens: failed
        ? null
        : { input: createHistogram(TOKENS), output: createHistogram(TOKENS) },
    };
    this.#observed.set(name, fresh);
    return fresh;
  }
}
